"""Workers that are killed: nothing is lost but the steps of the episodes they ran, and other workers do not notice."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ray_toys import ENVS, Deadly, Pair, alive, kill, move, pid_of, results_of, same, take_ids

from internutopia.cluster import worker_pool
from internutopia.core.task import BaseTask
from internutopia.core.vec_env import Env

pytestmark = pytest.mark.xdist_group('ray')

STEPS = 6


@pytest.fixture
def toys(toy) -> list[Any]:
    """One task per env, which end one after the other and tell in which process they run."""
    return [toy(max_steps=STEPS + i, tell_pid=True) for i in range(ENVS)]


@pytest.fixture
def fault(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Kills the worker once, or as often as told."""

    def make(where: str, step: int = 0, times: float = 1) -> dict[str, Any]:
        return {'where': where, 'step': step, 'times': times, 'what': 'kill', 'log': str(tmp_path / 'log')}

    return make


def comparable(results: Any) -> Any:
    """The same, whatever the process, and however many steps the run has made before."""
    results = copy.deepcopy(results)
    for obs in results[0]:
        if obs is not None:
            del obs['process'], obs['place']['render'], obs['arm']['render']
    return results


def spoil(value: Any) -> None:
    """Do what a user may do with an observation: here, set its arrays to zero."""
    if isinstance(value, dict):
        for item in value.values():
            spoil(item)
    elif isinstance(value, np.ndarray):
        value[...] = 0


def run(env: Env, between: Callable[[int], Any] = lambda step: None) -> tuple[dict[int, list[Any]], dict[int, str]]:
    """Run all episodes to their end.

    Returns:
        The steps of every episode, the last time that it was run, by id; the errors of envs, by env id.
    """
    runs: dict[int, list[Any]] = {}
    errors: dict[int, str] = {}
    env.reset()
    step = 0
    while env.simulation_app.is_running():
        between(step)
        step += 1
        assert step < 50
        columns = env.step([move(0.1 * i) for i in range(env.num_envs)])
        results = comparable(columns)
        for obs in columns[0]:
            spoil(obs)
        for env_id, (obs, reward, terminated, truncated, info) in enumerate(zip(*results, strict=True)):
            run = runs.setdefault(info['episode_id'], [])
            if run and run[-1][2]:  # it has ended before
                continue
            if 'error' in info:
                errors[env_id] = info['error']
                assert (reward, terminated, truncated, info['metrics']) == (0.0, False, True, {})
                assert same(obs, run[-1][0])  # what was seen last
                assert info['step'] == len(run)
                run.clear()
            else:
                run.append((obs, reward, terminated, truncated, info))
        lost = [i for i, info in enumerate(results[4]) if info and 'error' in info]
        if lost:
            _, configs = env.reset(lost)
            assert [config.max_steps for config in configs] == [STEPS + i for i in lost]  # the same, in their order
    return runs, errors


def test_a_worker_that_dies_between_steps(pair: Pair, toys):
    ids = pair.queue(*toys)
    expected, _ = run(pair.local)
    got, errors = run(pair.ray, lambda step: kill(pid_of(pair.ray, 3)) if step == 2 else None)
    assert same(got, expected)
    assert errors.keys() == {2, 3}
    assert all(error.startswith('worker 1 died') and 'goes back to the queue' in error for error in errors.values())
    assert results_of(pair.ray, ids) == results_of(pair.local, ids)


@pytest.mark.slow
@pytest.mark.parametrize('where', ['is_done', 'calculate_metrics'])
def test_a_worker_that_dies_in_a_step(pair: Pair, toys, fault, where):
    step = 2 if where != 'calculate_metrics' else STEPS
    ids = pair.queue(*toys, ray=[*toys[:2], toys[2].model_copy(update={'fault': fault(where, step)}), toys[3]])
    expected, _ = run(pair.local)
    got, errors = run(pair.ray)
    assert same(got, expected)
    assert errors.keys() == {2, 3}
    assert results_of(pair.ray, ids) == results_of(pair.local, ids)


def test_a_worker_that_dies_while_it_checks_actions(pair: Pair, toys, tmp_path):
    """The other one has not moved yet: its step is made without the dead one."""
    pair.queue(*toys)
    for env in (pair.local, pair.ray):
        env.reset()
    before = pair.ray.get_observations()
    expected = comparable(pair.local.step([move()] * ENVS))
    deadly = {'arm': {'drive': Deadly(tmp_path / 'log')}}
    got = comparable(pair.ray.step([move(), move(), deadly, move()]))
    assert same([column[:2] for column in got], [column[:2] for column in expected])
    assert got[3] == [False, False, True, True]
    assert [info['step'] for info in got[4]] == [1, 1, 0, 0]
    assert same(got[0][2:], comparable([before])[0][2:])


@pytest.mark.slow
@pytest.mark.parametrize('where', ['post_reset', 'prepare'])
def test_a_worker_that_dies_while_it_starts_episodes_is_not_noticed(pair: Pair, toys, fault, where, tmp_path):
    change = {'extra': Deadly(tmp_path / 'log')} if where == 'prepare' else {'fault': fault(where)}
    ids = pair.queue(*toys, ray=[*toys[:3], toys[3].model_copy(update=change)])
    expected, _ = run(pair.local)
    got, errors = run(pair.ray)
    assert (tmp_path / 'log').read_text().count('\n') == 1
    assert same(got, expected) and not errors
    assert results_of(pair.ray, ids) == results_of(pair.local, ids)


@pytest.mark.slow
def test_the_other_envs_of_a_worker_that_dies_while_one_is_reset(pair: Pair, toy, toys, fault):
    ids = pair.queue(*toys)
    pair.ray.reset()
    pair.ray.step([move()] * ENVS)
    (new,) = pair.queue(toy(), ray=[toy(fault=fault('load'), tell_pid=True)])
    obs, _ = pair.ray.reset([3])
    assert obs[0]['place']['task'] == str(new)
    _, _, _, truncated, info = pair.ray.step([move()] * ENVS)
    assert truncated == [False, False, True, False]
    assert [i['episode_id'] for i in info] == [*ids[:3], new]
    assert [i['step'] for i in info] == [2, 2, 1, 1]
    obs, _ = pair.ray.reset([2])
    assert obs[0]['place']['task'] == str(ids[2])
    assert results_of(pair.ray, ids) == []


@pytest.mark.slow
def test_an_episode_that_kills_every_worker_is_given_up(pair: Pair, toy, fault):
    """After `episode_retries`, which is 2 here; the other worker goes on all the time."""
    (survivor, killer, last) = pair.queue(*[toy(max_steps=9), toy(fault=fault('is_done', 2, 99)), toy(max_steps=9)])
    obs, _ = pair.ray.reset([0, 3])
    info: list[Any] = []
    for attempt in range(3):
        pair.ray.step([move()] * ENVS)
        _, _, terminated, truncated, info = pair.ray.step([move()] * ENVS)
        assert (terminated[3], truncated[3], info[3]['episode_id']) == (False, True, killer)
        assert truncated[0] is False and info[0]['step'] == 2 * (attempt + 1)
        obs, _ = pair.ray.reset([3])
    assert 'given up' in info[3]['error']
    assert obs[0]['place']['task'] == str(last)
    (line,) = results_of(pair.ray, [survivor, killer])
    assert (line['episode_id'], line['env_id'], line['steps'], line['truncated']) == (killer, 3, 1, True)
    assert (line['metrics'], line['error']) == ({}, info[3]['error'])


@pytest.mark.slow
def test_an_episode_that_kills_every_worker_at_its_start_is_an_error_and_runs_nowhere(pair: Pair, toy, fault):
    ids = pair.queue(*[toy(), toy(fault=fault('load', 0, 99))])
    with pytest.raises(RuntimeError, match=rf'episode {ids[1]} \(task_configs\[{ids[1]}\]\): 3 workers have died'):
        pair.ray.reset([0, 3])
    assert pair.ray.get_observations() == [None] * ENVS
    assert take_ids(pair.ray, 2) == ids


@pytest.mark.slow
def test_a_worker_may_die_again_and_again(pair: Pair, toy):
    ids = pair.queue(toy(max_steps=3, tell_pid=True), toy(max_steps=3))
    pair.ray.reset([3, 0])
    for _ in range(2):
        kill(pid_of(pair.ray, 3))
        _, _, _, truncated, info = pair.ray.step([None] * ENVS)
        assert truncated[3] and info[3]['step'] == 0
        pair.ray.reset([3])
    terminated = [pair.ray.step([None] * ENVS)[2][3] for _ in range(3)]
    assert terminated == [False, False, True]
    assert [line['error'] for line in results_of(pair.ray, ids)] == [None, None]


@pytest.mark.slow
def test_calls_between_steps_survive_a_death(pair: Pair, toy, opengl):
    """Observations are the last ones, pictures are without the lost envs, states are refused."""
    pair.queue(*(toy('floor', max_steps=50, tell_pid=True) for _ in range(ENVS)))
    obs, _ = pair.ray.reset()
    pid = pid_of(pair.ray, 3)
    kill(pid)
    with pytest.raises(RuntimeError, match='worker 1 died'):
        pair.ray.get_state([3])
    with pytest.raises(ValueError, match='env 3 has no episode'):
        pair.ray.get_state([3])
    assert same(pair.ray.get_observations()[3], obs[3])
    assert pair.ray.render(None, (48, 32)).std() > 0
    kill(pid_of(pair.ray, 0))
    assert pair.ray.render(None, (48, 32)).std() == 0  # nothing is left to see
    pair.ray.warm_up(2)
    _, _, _, truncated, _ = pair.ray.step([None] * ENVS)
    assert truncated == [True] * ENVS
    assert not alive(pid)


@pytest.mark.slow
def test_a_worker_that_dies_while_it_starts_is_started_again(cluster, distributed, toy, tmp_path, monkeypatch):
    monkeypatch.setitem(BaseTask.tasks, 'Deadly', Deadly(tmp_path / 'log'))  # read with the classes
    env = Env(distributed(proc_num=1, tasks=[toy(max_steps=1)]))
    env.reset()
    assert env.step([None] * 2)[2][0] is True
    env.close()
    assert (tmp_path / 'log').read_text().count('\n') == 1


@pytest.mark.slow
def test_a_worker_that_always_dies_while_it_starts_is_an_error(cluster, distributed, toy, tmp_path, monkeypatch):
    monkeypatch.setattr(worker_pool, '_MAX_SPAWNS', 2)
    monkeypatch.setitem(BaseTask.tasks, 'Deadly', Deadly(tmp_path / 'log', times=99))
    with pytest.raises(RuntimeError, match='worker 0 died 2 times while it was starting; its log says why'):
        Env(distributed(proc_num=1, tasks=[toy()]))
