"""Results of ended episodes: what goes into `metrics_save_path`, and when."""

import errno
import json
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internutopia.core.episodes.queue import plain


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
    (line,) = lines(path)
    assert (len(line.pop('config')), len(line.pop('crc'))) == (16, 8)
    assert line == first
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
    env.runner.current_tasks['0'].robots['arm'].articulation.set_joint_velocities([1e12, 0.0])
    info = env.step([None])[4][0]
    (line,) = lines(tmp_path / 'r')
    assert 'diverged' in line['error'] and line['error'] == info['error']
    assert (line['truncated'], line['terminated'], line['steps'], line['metrics']) == (False, True, 1, {'ToyMetric': 0})


@pytest.mark.parametrize('path', ['missing-folder/r.jsonl', '.'])
def test_a_file_that_cannot_be_written_is_found_out_when_the_env_is_built(make_env, tmp_path, path):
    with pytest.raises(OSError, match='metrics_save_path') as raised:
        make_env(metrics_save_path=tmp_path / path)
    assert str(tmp_path) in str(raised.value)


def test_lines_are_on_the_disk_before_step_returns_with_one_wait_per_step(make_env, make_task, monkeypatch, tmp_path):
    path, sizes, synchronize = tmp_path / 'r', [], os.fsync

    def fsync(file: int) -> None:
        synchronize(file)
        sizes.append(os.fstat(file).st_size)

    env = make_env(tasks=[make_task(max_steps=2)] * 3, env_num=3, metrics_save_path=path)
    env.reset()
    monkeypatch.setattr(os, 'fsync', fsync)
    env.step([None] * 3)
    assert sizes == []
    env.step([None] * 3)
    assert len(lines(path)) == 3 and sizes == [path.stat().st_size]


def test_a_metric_that_fails_costs_no_result_of_another_env(make_env, make_task, tmp_path):
    tasks = [make_task(max_steps=1), make_task(max_steps=1, metrics=[metric()])]
    env = make_env(tasks=tasks, env_num=2, metrics_save_path=tmp_path / 'r')
    env.reset()
    env.runner.current_tasks['1'].metrics['ToyMetric'].metric_config = None
    with pytest.raises(AssertionError):
        env.step([None] * 2)
    assert [line['episode_id'] for line in lines(tmp_path / 'r')] == [0]


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file can grow beyond so many bytes: a write puts what fits and then fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize('resume', [False, True])
@pytest.mark.parametrize('fitting', [0, 1, 200, 250])
def test_a_full_disk_loses_nothing_and_leaves_no_torn_line(make_env, make_task, tmp_path, resume, fitting):
    path = tmp_path / 'r'
    tasks = [make_task(max_steps=steps) for steps in (1, 2, 2, 9)]
    env = make_env(tasks=tasks, env_num=4, metrics_save_path=path, resume=resume)
    env.reset()
    env.step([None] * 4)
    before = path.read_bytes()
    with room_for(len(before) + fitting):
        for _ in range(2):  # the second time, no other episode ends
            with pytest.raises(OSError, match='free some space') as raised:
                env.step([None] * 4)
            assert (raised.value.errno, raised.value.filename) == (errno.EFBIG, str(path))
            assert path.read_bytes() == before
    env.step([None] * 4)
    assert [line['episode_id'] for line in lines(path)] == [0, 1, 2]
    assert env.runner.envs[3].step == 4


def test_what_found_no_room_is_written_when_the_env_is_closed(make_env, make_task, tmp_path):
    envs = []
    for name in ('a', 'b'):
        envs.append(make_env(tasks=[make_task(max_steps=1)], env_num=1, metrics_save_path=tmp_path / name))
        envs[-1].reset()
        with room_for(10), pytest.raises(OSError, match='free some space'):
            envs[-1].step([None])
    envs[0].close()
    assert len(lines(tmp_path / 'a')) == 1
    with room_for(10), pytest.raises(OSError, match='free some space'):
        envs[1].close()
    envs[1].close()
    assert lines(tmp_path / 'b') == []


@pytest.mark.skipif(not os.path.exists('/dev/full'), reason='a device of Linux')
def test_a_device_without_room(make_env, make_task):
    env = make_env(tasks=[make_task(max_steps=1)], env_num=1, metrics_save_path='/dev/full')
    env.reset()
    with pytest.raises(OSError, match='free some space') as raised:
        env.step([None])
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, '/dev/full')
    with pytest.raises(OSError, match='free some space'):
        env.close()


@pytest.mark.parametrize('resume', [False, True])
def test_ctrl_c_while_a_line_is_written_writes_it_once(make_env, make_task, monkeypatch, tmp_path, resume):
    def interrupted(file: int) -> None:
        raise KeyboardInterrupt

    env = make_env(tasks=[make_task(max_steps=1)], env_num=1, metrics_save_path=tmp_path / 'r', resume=resume)
    env.reset()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, 'fsync', interrupted)
        env.step([None])
    assert lines(tmp_path / 'r') == []
    env.close()
    assert len(lines(tmp_path / 'r')) == 1


def append_one(make_env, make_task, path: Path) -> None:
    env = make_env(tasks=[make_task(max_steps=1)], env_num=1, metrics_save_path=path)
    env.reset()
    env.step([None])
    env.close()


def test_a_torn_last_line_is_cut_off_before_anything_is_appended(make_env, make_task, tmp_path, caplog):
    path = tmp_path / 'r'
    for _ in range(2):
        append_one(make_env, make_task, path)
    whole = path.read_bytes()
    assert caplog.text == ''
    for missing in (1, 50, len(whole) // 2 - 1):
        path.write_bytes(whole[:-missing])
        append_one(make_env, make_task, path)
        assert path.read_bytes() == whole
        assert str(path) in caplog.text and 'incomplete' in caplog.text
        caplog.clear()


def test_text_of_others_is_never_cut_off(make_env, make_task, tmp_path):
    path = tmp_path / 'notes'
    path.write_text('line\nmy notes')
    append_one(make_env, make_task, path)
    first, second, result = path.read_text().splitlines()
    assert (first, second, json.loads(result)['episode_id']) == ('line', 'my notes', 0)


def test_several_envs_append_to_one_file(make_env, make_task, tmp_path):
    path = tmp_path / 'r'
    envs = [make_env(tasks=[make_task(max_steps=2)] * 2, env_num=2, metrics_save_path=path) for _ in range(3)]
    for env in envs:
        env.reset()
    for _ in range(2):
        for env in envs:
            env.step([None] * 2)
    assert [line['episode_id'] for line in lines(path)] == [0, 1] * 3


def test_one_of_several_envs_without_room_spoils_no_line_of_the_others(make_env, make_task, tmp_path):
    path = tmp_path / 'r'
    envs = [make_env(tasks=[make_task(max_steps=1)], env_num=1, metrics_save_path=path) for _ in range(2)]
    for env in envs:
        env.reset()
    with room_for(10), pytest.raises(OSError, match='free some space'):
        envs[0].step([None])
    for env in reversed(envs):
        env.step([None])
    rest, *results = path.read_text().splitlines()
    assert len(rest) == 10 and [json.loads(line)['episode_id'] for line in results] == [0, 0]


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
