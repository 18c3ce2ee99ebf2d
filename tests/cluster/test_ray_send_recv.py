"""`send` and `recv` with workers that need not wait for each other; see also `test_async_stepper.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ray_toys import ENVS, Pair, kill, move, pid_of, results_of, same, wait_until

pytestmark = pytest.mark.xdist_group('ray')


def test_every_env_goes_through_the_same_as_with_step(pair: Pair, toy):
    """Each worker is sent its next actions and its next episodes as soon as its results are there."""
    ids = pair.queue(*(toy(max_steps=3 + i) for i in range(ENVS)))
    expected: list[list[Any]] = [[] for _ in range(ENVS)]
    pair.local.reset()
    for k in range(6):
        for steps, result in zip(expected, zip(*pair.local.step([move(0.1 * k)] * ENVS), strict=True), strict=True):
            steps.append(result)
    got: list[list[Any]] = [[] for _ in range(ENVS)]
    pair.ray.reset()
    pair.ray.send([move(0.0)] * ENVS, range(ENVS))
    while min(map(len, got)) < 6:
        *columns, env_ids = pair.ray.recv()
        assert env_ids in ([0, 1], [2, 3], [0, 1, 2, 3])
        for env_id, result in zip(env_ids, zip(*columns, strict=True), strict=True):
            got[env_id].append(result)
        again = [env_id for env_id in env_ids if len(got[env_id]) < 6]
        pair.ray.send([move(0.1 * len(got[env_id])) for env_id in again], again)
    for steps in (*got, *expected):
        for obs, *_ in steps:  # frames are counted from the first step of the run, which others have shared
            del obs['arm']['render'], obs['place']['render']
    assert same(got, expected)
    assert results_of(pair.ray, ids) == results_of(pair.local, ids)


@pytest.fixture
def slow(toy, tmp_path: Path) -> Any:
    """A task whose first step waits for a file beside its log."""
    return toy(fault={'where': 'is_done', 'times': 1, 'what': 'wait', 'log': str(tmp_path / 'log')}, tell_pid=True)


def test_a_slow_worker_does_not_hold_up_the_other_one(pair: Pair, toy, slow, tmp_path: Path):
    pair.queue(*[toy(max_steps=50)] * ENVS, ray=[*[toy(max_steps=50)] * 3, slow])
    pair.ray.reset()
    pair.ray.send([None] * ENVS, range(ENVS))
    for step in range(1, 4):
        _, _, _, _, info, env_ids = pair.ray.recv()
        assert env_ids == [0, 1]
        assert [i['step'] for i in info] == [step, step]
        pair.ray.send([None, None], [1, 0])
    pair.ray.recv()
    obs, _ = pair.ray.reset([0])  # which is at rest
    assert obs == [None]
    with pytest.raises(RuntimeError, match='reset: env 2 is stepping'):
        pair.ray.reset([2])
    pair.ray.send([None], [1])
    (tmp_path / 'go').touch()
    assert pair.ray.recv(4)[5] == [0, 1, 2, 3]
    assert [None if i is None else i['step'] for i in pair.ray.step([None] * ENVS)[4]] == [None, 6, 2, 2]


def test_a_bad_action_of_one_worker_does_not_stop_the_other_one(pair: Pair, toy):
    pair.queue(*[toy(max_steps=50)] * ENVS)
    pair.ray.reset()
    pair.ray.step([move()] * ENVS)  # of a signature that is known now
    before = pair.ray.get_state([2, 3])
    for bad in (move(float('nan')), {'arm': {'push': [0.1]}}):
        with pytest.raises(ValueError, match='env 3'):
            pair.ray.send([move(), move(), move(), bad], [0, 1, 2, 3])
        assert pair.ray.recv()[5] == [0, 1]
        with pytest.raises(ValueError, match='0 envs are stepping'):
            pair.ray.recv()
        after = pair.ray.get_state([2, 3])
        assert same(after.envs, before.envs)
    pair.ray.send([move(), move()], [2, 3])
    assert [i['step'] for i in pair.ray.recv()[4]] == [2, 2]


@pytest.mark.slow
def test_a_worker_that_dies_at_work(pair: Pair, toy, slow, tmp_path: Path):
    ids = pair.queue(*[toy(max_steps=50)] * ENVS, ray=[*[toy(max_steps=50)] * 3, slow])
    pair.ray.reset()
    pid = pid_of(pair.ray, 3)
    pair.ray.send([None] * ENVS, range(ENVS))
    assert pair.ray.recv()[5] == [0, 1]
    wait_until(lambda: (tmp_path / 'log').exists() and (tmp_path / 'log').read_text())
    kill(pid)
    _, _, _, truncated, info, env_ids = pair.ray.recv()
    assert (env_ids, truncated) == ([2, 3], [True, True])
    assert info[0]['error'].startswith('worker 1 died')
    obs, _ = pair.ray.reset([2, 3])
    assert [o['place']['task'] for o in obs] == [str(ids[2]), str(ids[3])]
    pair.ray.send([None, None], [2, 3])
    assert [i['step'] for i in pair.ray.recv()[4]] == [1, 1]
