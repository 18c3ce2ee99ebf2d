"""`Config.resume`: a run goes on where its results file says, and never runs or records an episode twice."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from internutopia.core import gym_env
from internutopia.core.episodes.results import ResultsWriter


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


@pytest.mark.slow
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
