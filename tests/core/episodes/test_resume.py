"""`Config.resume`: a run goes on where its results file says, and never runs or records an episode twice."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from internutopia.core import gym_env
from internutopia.core.config import Config
from internutopia.core.episodes.results import ResultsWriter

METRIC = {'type': 'ToyMetric', 'metric_config': {}}


@pytest.fixture
def make_run(make_config, make_task, tmp_path):
    """Makes the config of a run of short episodes of 1, 2, 3, 1, ... steps that writes to `tmp_path / 'r'`."""

    def make(episodes: int = 6, task: Mapping[str, Any] = {}, **fields: Any) -> Config:
        tasks = [make_task(max_steps=1 + index % 3, metrics=[METRIC], **task) for index in range(episodes)]
        return make_config(tasks=tasks, **{'seed': 3, 'metrics_save_path': tmp_path / 'r', 'resume': True, **fields})

    return make


@pytest.fixture
def run(make_env):
    """Runs a config, at most so many steps; returns the noise key that each episode had."""

    def run(config: Config, steps: int = 1000) -> dict[int, int]:
        env, noise_keys = make_env(config), {}
        ended = list(range(env.env_num))
        for _ in range(steps):
            if ended:
                env.reset(ended)
            if not env.simulation_app.is_running():
                break
            for env_id, name in env.runner.env_id_to_task_name_map.items():
                noise_keys[int(name)] = int(env.runner.world.noise_keys[env_id])
            _, _, terminated, truncated, _ = env.step([None] * env.env_num)
            ended = [i for i in range(env.env_num) if terminated[i] or truncated[i]]
        env.close()
        return noise_keys

    return run


def episodes(path: Path) -> list[dict[str, Any]]:
    """What the lines say, without the env that an episode happened to run in, by episode."""
    results = [{**json.loads(line), 'env_id': None} for line in path.read_text().splitlines()]
    return sorted(results, key=lambda result: result['episode_id'])


@pytest.mark.parametrize(
    'fields', [{}, {'episode_order': 'cycle'}, {'episode_order': 'shuffle'}, {'env_num': 1}], ids=str
)
def test_parts_of_a_run_are_together_what_it_is_without_a_break(make_run, run, tmp_path, fields):
    noise_keys = run(make_run(metrics_save_path=tmp_path / 'whole', **fields), 30)
    whole = {result['episode_id']: result for result in episodes(tmp_path / 'whole')}
    for _ in range(5):
        done = {result['episode_id'] for result in episodes(tmp_path / 'r')} if (tmp_path / 'r').exists() else set()
        part = run(make_run(**fields), 4)
        assert part.items() <= noise_keys.items() and not part.keys() & done
    parts = episodes(tmp_path / 'r')
    assert [result['episode_id'] for result in parts][:6] == list(range(6))
    assert parts == [whole[result['episode_id']] for result in parts]


def test_only_what_has_no_result_is_run(make_run, run, tmp_path):
    run(make_run())
    path = tmp_path / 'r'
    whole, lines = episodes(path), path.read_text().splitlines(keepends=True)
    path.write_text(''.join(line for line in lines if json.loads(line)['episode_id'] in (1, 4)))
    assert sorted(run(make_run())) == [0, 2, 3, 5]
    assert episodes(path) == whole


def test_a_run_that_is_done_does_nothing(make_run, run, make_env, tmp_path):
    run(make_run())
    before = (tmp_path / 'r').read_bytes()
    env = make_env(make_run())
    assert not env.simulation_app.is_running()
    assert env.reset() == ([None, None], [None, None])
    assert env.finished() and env.step([None] * 2) == tuple([[None, None]] * 5)
    env.close()
    assert (tmp_path / 'r').read_bytes() == before


@pytest.mark.parametrize('there', [False, True])
def test_without_results_it_starts_at_the_beginning(make_run, run, tmp_path, there):
    if there:
        (tmp_path / 'r').touch()
    assert sorted(run(make_run())) == list(range(6))


def test_a_line_torn_anywhere_is_cut_off_and_its_episode_run_again(make_run, run, tmp_path, caplog):
    run(make_run())
    path = tmp_path / 'r'
    whole = episodes(path)
    *rest, last = path.read_bytes().splitlines(keepends=True)
    others = frozenset(json.loads(line)['episode_id'] for line in rest)
    for kept in range(1, len(last)):
        path.write_bytes(b''.join(rest) + last[:kept])
        writer = ResultsWriter(make_run())
        assert (writer.done, path.read_bytes()) == (others, b''.join(rest))
        writer.close()
        assert str(path) in caplog.text and 'incomplete' in caplog.text
        caplog.clear()
    for kept in (1, 30, len(last) - 1):
        path.write_bytes(b''.join(rest) + last[:kept])
        run(make_run())
        assert episodes(path) == whole
    path.write_bytes(b''.join(rest) + last[:50] + b'\n')  # what a power failure can leave
    run(make_run())
    assert episodes(path) == whole


def result(**fields: Any) -> str:
    return json.dumps({'episode_id': 1, 'task_index': 1, 'task': 'ToyTask', **fields}) + '\n'


FIRST = result(episode_id=0, task_index=0)


@pytest.mark.parametrize(
    ('text', 'fields', 'expected'),
    [
        (FIRST + 'hello\n' + result(), {}, ['line 2', 'JSON object', 'hello']),
        (FIRST + 'hello\n', {}, ['line 2', 'JSON object']),
        ('my notes', {}, ['line 1', 'my notes']),
        (FIRST + '\n' + result(), {}, ['line 2', 'JSON object']),
        (FIRST + '{"episode_id": 1, \n' + result(episode_id=2, task_index=2), {}, ['line 2', 'JSON object']),
        ('\x00\xff\n' + FIRST, {}, ['line 1', 'JSON object']),
        ('[1]\n', {}, ['line 1', 'JSON object', '[1]']),
        ('{}\n', {}, ['line 1', "'episode_id'", 'None']),
        (result(episode_id='1'), {}, ["'episode_id'", "'1'"]),
        (result(episode_id=True), {}, ["'episode_id'", 'True']),
        (result(episode_id=-1), {}, ["'episode_id'", '-1']),
        (result(task_index=1.0), {}, ["'task_index'", '1.0']),
        (result(episode_id=6, task_index=6), {}, ["'task_index' is 6", '6 entries']),
        (FIRST + result(task_index=2), {}, ['line 2', "'once'", 'got 2']),
        (result(episode_id=8, task_index=1), {'episode_order': 'cycle'}, ["'cycle'", 'is 2', 'got 1']),
        (result(task='OtherTask'), {}, ['task_configs[1]', "'ToyTask'", "'OtherTask'"]),
        (FIRST + result() + FIRST, {}, ['line 3', 'second result of episode 0', 'line 1']),
    ],
)
def test_a_file_of_something_else_is_refused_and_left_alone(make_run, make_env, tmp_path, text, fields, expected):
    path = tmp_path / 'r'
    path.write_text(text)
    with pytest.raises(ValueError) as raised:
        make_env(make_run(**fields))
    for part in (str(path), 'of this config', *expected):
        assert part in str(raised.value)
    assert path.read_text() == text
    path.unlink()
    make_env(make_run())  # nobody keeps the file


def test_another_seed_of_a_shuffled_run_is_found_out(make_run, make_env, run, tmp_path):
    run(make_run(episode_order='shuffle'), 4)
    before = (tmp_path / 'r').read_bytes()
    with pytest.raises(ValueError, match=r'r, line \d+: episode \d of seed 4 is task_configs\[\d\], here'):
        make_env(make_run(episode_order='shuffle', seed=4))
    assert (tmp_path / 'r').read_bytes() == before
    make_env(make_run(episode_order='shuffle'))


@pytest.mark.parametrize('path', ['console', 'none', None])
def test_a_file_is_needed(make_run, path):
    with pytest.raises(ValidationError, match=f'resume=True needs metrics_save_path to be a file.* {path!r}'):
        make_run(metrics_save_path=path)


def test_a_shuffled_run_needs_a_seed(make_run):
    with pytest.raises(ValidationError, match="episode_order='shuffle' needs a seed"):
        make_run(episode_order='shuffle', seed=None)


def test_a_pipe_has_no_results_to_resume_from(make_run, make_env, tmp_path):
    os.mkfifo(tmp_path / 'pipe')
    with pytest.raises(OSError, match='not a folder, pipe') as raised:
        make_env(make_run(metrics_save_path=tmp_path / 'pipe'))
    assert raised.value.filename == str(tmp_path / 'pipe')


@pytest.mark.parametrize(('first', 'second'), [(True, True), (True, False), (False, True)])
def test_a_second_run_on_the_file_is_refused(make_run, make_env, tmp_path, first, second):
    env = make_env(make_run(resume=first))
    with pytest.raises(OSError, match='another run writes to this file') as raised:
        make_env(make_run(resume=second))
    assert raised.value.filename == str(tmp_path / 'r')
    env.close()
    make_env(make_run(resume=second))


def test_the_gymnasium_front_door_resumes(make_run, run, tmp_path):
    config = make_run(env_num=1, task={'robots': []})
    run(config, 3)
    env = gym_env.Env(config)
    ids = []
    while env.simulation_app.is_running():
        env.reset()
        while True:
            _, _, terminated, truncated, info = env.step({})
            if terminated or truncated:
                ids.append(info['episode_id'])
                break
    env.close()
    assert ids == [2, 3, 4, 5]
    assert [each['episode_id'] for each in episodes(tmp_path / 'r')] == list(range(6))
