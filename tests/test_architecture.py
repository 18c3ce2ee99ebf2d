"""Architecture: modules import each other in one direction only; `.importlinter` says in which."""

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
structure = runpy.run_path(str(ROOT / 'tools' / 'structure.py'))


@pytest.fixture(scope='module')
def trees() -> dict[str, ast.Module]:
    """All modules by name, parsed."""
    return {name: ast.parse(path.read_text()) for name, path in structure['files']()}


@pytest.mark.slow
def test_no_modules_import_each_other_in_a_circle(trees: dict[str, ast.Module]) -> None:
    assert len(trees) > 400
    assert structure['circles'](trees) == []  # in functions, for type checking and by string, too


@pytest.mark.slow
def test_no_room_holds_more_than_a_fifth_of_the_code(trees: dict[str, ast.Module]) -> None:
    lines = structure['lines_by_room'](trees)
    room, count = lines.most_common(1)[0]
    assert count <= sum(lines.values()) / 5, room


@pytest.mark.slow
def test_imports_by_string_are_found(trees: dict[str, ast.Module]) -> None:
    tree = ast.parse("""maker = 'internutopia.rl:VectorEnv'""")
    assert structure['imports_by_string']({'a': tree, **trees})['a'] == {'internutopia.rl'}


@pytest.mark.slow
def test_2x_is_a_guest(trees: dict[str, ast.Module]) -> None:
    importers, branches = structure['hosts'](trees)
    robot, joint = 'internutopia.core.robot.isaacsim', 'internutopia.core.util.joint'
    assert set(importers) == {
        'internutopia',
        f'{robot}.articulation',
        f'{robot}.rigid_body',
        joint,
    }  # the package itself, and paths of 2.x
    assert branches == []  # what differs is in hooks: internutopia.util.conventions


@pytest.mark.slow
def test_docstrings_say_what_things_are_or_do(trees: dict[str, ast.Module]) -> None:
    docs = [text for tree in trees.values() for text in structure['docstrings'](tree)]
    assert len(docs) > 4000
    assert sum(bool(structure['OPENINGS'].match(text)) for text in docs) < 50  # "What ...", "Whether ..."


def test_no_module_name_is_in_more_than_two_rooms() -> None:
    assert structure['shared_names']() == {}


def test_pages_for_contributors_name_files_that_exist() -> None:
    paths = [
        path.as_posix()
        for folder in ('internutopia', 'internutopia_extension', 'tests', 'tools', 'benchmarks')
        for path in (ROOT / folder).rglob('*.py')
    ]
    for page in ('docs/design.md', 'CONTRIBUTING.md'):
        names = set(re.findall(r'[\w/]+\.py\b', (ROOT / page).read_text()))
        assert len(names) > 5
        assert [name for name in sorted(names) if not any(path.endswith(f'/{name}') for path in paths)] == []
