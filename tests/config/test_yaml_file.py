"""YAML files that would take all memory or the stack: refused, with file, line and bound."""

import pytest

from internutopia.config import Config
from internutopia.util.bounds import MAX_DEPTH, MAX_FILE, MAX_NODES


def laughs(levels: int, key: str = '') -> str:
    """Ten times as many values with each level: a file of 1 KB."""
    ten = ', '.join(['*a{0}'] * 10)
    lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]' if not key else 'a0: &a0 {x: 1, y: 2}']
    for level in range(1, levels):
        items = ten.format(level - 1)
        lines.append(f'a{level}: &a{level} ' + (f'{{{key}: [{items}]}}' if key else f'[{items}]'))
    return '\n'.join(lines) + '\n'


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        (laughs(9), f'more than {MAX_NODES} values, those that aliases repeat included'),
        (laughs(9, key='<<'), f'more than {MAX_NODES} values'),
        ('task_configs: ' + '[' * 10**5, f'more than {MAX_DEPTH} levels'),
        ('a: ' + '{b: ' * 1000 + '1' + '}' * 1000, f'more than {MAX_DEPTH} levels'),
        ('\n'.join('  ' * depth + 'a:' for depth in range(1000)), f'more than {MAX_DEPTH} levels'),
        ('task_configs: &a [{robots: *a}]', "'a' holds an alias of itself"),
        ('a: 1\nb: {c: 1, c: 2}\n', "'c' is duplicated"),
        ('a: 2026-13-01', 'month must be in 1..12'),
        ('a: ' + '9' * 5000, 'Exceeds the limit'),
    ],
    ids=['values', 'merges', 'lists', 'mappings', 'indents', 'itself', 'twice', 'date', 'digits'],
)
def test_a_file_beyond_the_bounds_is_refused(tmp_path, text, expected):
    file = tmp_path / 'run.yaml'
    file.write_text(text)
    with pytest.raises(ValueError) as raised:
        Config.from_yaml(file)
    assert str(file) in str(raised.value) and expected in str(raised.value)


def test_a_large_file_is_refused_unread(tmp_path):
    file = tmp_path / 'run.yaml'
    with file.open('wb') as sparse:
        sparse.truncate(10 * 2**30)
    with pytest.raises(ValueError, match=f'run.yaml: expected a YAML file of at most {MAX_FILE} bytes'):
        Config.from_yaml(file)


def test_aliases_and_levels_within_the_bounds_are_read(tmp_path):
    file = tmp_path / 'run.yaml'
    deep = '{x: ' * (MAX_DEPTH - 5) + '1' + '}' * (MAX_DEPTH - 5)
    file.write_text(f'task_configs: [&a {{deep: {deep}}}, *a, *a]\nseed: 3')
    config = Config.from_yaml(file)
    assert len(config.task_configs) == 3 and config.seed == 3


def test_deep_json_is_refused():
    with pytest.raises(ValueError, match='recursion limit'):
        Config.model_validate_json('{"task_configs": ' + '[' * 10**5)
