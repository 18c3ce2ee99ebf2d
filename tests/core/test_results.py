"""Results of ended episodes: what goes into `metrics_save_path`, and when."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internutopia.core.results import plain


def lines(path) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def metric(value=None, name=None):
    return {'type': 'ToyMetric', 'name': name, 'metric_config': {} if value is None else {'value': value}}


def test_one_line_per_episode_written_before_step_returns(make_env, make_task, tmp_path):
    path = tmp_path / 'results.jsonl'
    tasks = [
        make_task(max_steps=2, metrics=[metric()]),
        make_task(max_steps=9, max_episode_steps=3, metrics=[metric(name='a'), metric(1.5, 'b')]),
        make_task(max_steps=1),
    ]
    env = make_env(tasks=tasks, env_num=2, metrics_save_path=path)
    env.reset()
    env.step([None] * 2)
    assert lines(path) == []
    env.step([None] * 2)
    first = {
        'episode_id': 0,
        'task_index': 0,
        'task_name': '0',
        'task': 'ToyTask',
        'env_id': 0,
        'steps': 2,
        'terminated': True,
        'truncated': False,
        'metrics': {'ToyMetric': 2},
        'error': None,
    }
    assert lines(path) == [first]
    env.step([None] * 2)
    second = lines(path)[1]
    assert (second['episode_id'], second['env_id'], second['steps']) == (1, 1, 3)
    assert (second['terminated'], second['truncated'], second['metrics']) == (False, True, {'a': 3, 'b': 1.5})
    for _ in range(3):
        env.step([None] * 2)
    assert len(lines(path)) == 2
    env.reset([1])
    env.step([None] * 2)
    assert [line['episode_id'] for line in lines(path)] == [0, 1, 2]
    assert lines(path)[2]['metrics'] == {}


def test_an_abandoned_episode_leaves_no_line(make_env, make_task, tmp_path):
    env = make_env(tasks=[make_task(max_steps=1), make_task()], env_num=1, metrics_save_path=tmp_path / 'r')
    env.reset()
    env.reset()
    env.step([None])
    env.close()
    assert lines(tmp_path / 'r') == []


def test_lines_are_appended_to_what_is_there(make_env, make_task, tmp_path):
    for _ in range(2):
        env = make_env(tasks=[make_task(max_steps=1)], env_num=1, metrics_save_path=str(tmp_path / 'r'))
        env.reset()
        env.step([None])
        env.close()
    assert [line['episode_id'] for line in lines(tmp_path / 'r')] == [0, 0]


def test_numpy_values_and_values_that_json_lacks(make_env, make_task, tmp_path):
    value = {
        'scalar': np.float32(0.5),
        'count': np.int64(7),
        'flag': np.bool_(True),
        'array': np.array([[1.0, np.nan], [np.inf, 2.0]], np.float32),
        'nan': float('nan'),
        'nested': [{'deep': (np.float64(-np.inf), None, 'text')}],
        3: 'key',
        'path': Path('/a/b'),
    }
    env = make_env(tasks=[make_task(max_steps=1, metrics=[metric(value)])], env_num=1, metrics_save_path=tmp_path / 'r')
    env.reset()
    info = env.step([None])[4][0]
    assert info['metrics']['ToyMetric']['count'] == 7
    assert lines(tmp_path / 'r')[0]['metrics']['ToyMetric'] == {
        'scalar': 0.5,
        'count': 7,
        'flag': True,
        'array': [[1.0, None], [None, 2.0]],
        'nan': None,
        'nested': [{'deep': [None, None, 'text']}],
        '3': 'key',
        'path': '/a/b',
    }


def test_a_failed_episode_says_how(make_env, make_task, tmp_path):
    env = make_env(tasks=[make_task(metrics=[metric()])], env_num=1, metrics_save_path=tmp_path / 'r')
    env.reset()
    env.runner.current_tasks['0'].robots['arm'].articulation.set_joint_positions([np.nan, 0])
    info = env.step([None])[4][0]
    (line,) = lines(tmp_path / 'r')
    assert 'diverged' in line['error'] and line['error'] == info['error']
    assert (line['truncated'], line['terminated'], line['steps'], line['metrics']) == (True, False, 1, {'ToyMetric': 0})


@pytest.mark.parametrize('path', ['missing-folder/r.jsonl', '.'])
def test_a_file_that_cannot_be_written_is_found_out_when_the_env_is_built(make_env, tmp_path, path):
    with pytest.raises(OSError, match='metrics_save_path') as raised:
        make_env(metrics_save_path=tmp_path / path)
    assert str(tmp_path) in str(raised.value)


@pytest.mark.parametrize(('path', 'printed'), [('console', 1), ('none', 0), (None, 0)])
def test_console_prints_and_none_does_not(make_env, make_task, capsys, monkeypatch, tmp_path, path, printed):
    monkeypatch.chdir(tmp_path)
    env = make_env(tasks=[make_task(max_steps=1)], env_num=1, metrics_save_path=path)
    env.reset()
    env.step([None])
    assert [json.loads(line)['episode_id'] for line in capsys.readouterr().out.splitlines()] == [0] * printed
    assert list(tmp_path.iterdir()) == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats() | st.text() | st.binary(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
            | st.lists(st.floats(width=32), max_size=3).map(lambda values: np.array(values, np.float32))
        ),
        max_leaves=8,
    )
)
def test_whatever_a_metric_computes_becomes_plain_json(value):
    text = json.dumps(plain(value), allow_nan=False)
    assert plain(json.loads(text)) == json.loads(text)
