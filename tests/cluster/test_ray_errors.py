"""Mistakes in a distributed run: the errors of a local one, and no worker changes anything."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from overlaps import in_fork
from ray_toys import ENVS, Failure, Pair, kill, move, outcome, pid_of, same, take_ids

from internutopia.cluster.worker_pool import WorkerPool
from internutopia.config import RewardCfg
from internutopia.config.config import RayDistributionCfg
from internutopia.core.episodes.queue import EpisodeRecord
from internutopia.core.vec_env import Env

pytestmark = pytest.mark.xdist_group('ray')

BAD = {
    'nan': move(float('nan')),
    'infinite': {'arm': {'drive': np.array([[np.inf, 0.0]])}},
    'infinite as float32': move(1e300),
    'huge integer': move(10**400),  # pyright: ignore[reportArgumentType]
    'short': {'arm': {'drive': [[0.1]]}},
    'flat': {'arm': {'drive': [0.1, 0.2]}},
    'long': {'arm': {'drive': np.zeros((1, 3))}},
    'none': {'arm': {'drive': None}},
    'list of none': {'arm': {'drive': [[None, None]]}},
    'empty': {'arm': {'push': []}},
    'text': {'arm': {'drive': 'up'}},
    'texts': {'arm': {'drive': np.array([['a', 'b']])}},
    'objects': {'arm': {'drive': np.array([[None, 1.0]], object)}},
    'ragged': {'arm': {'drive': [[0.1], 0.2]}},
    'bytes of push': {'arm': {'push': b'ab'}},
    'no controller': {'arm': {'walk': [0.0]}},
    'no robot': {'leg': {'drive': [[0.1, 0.2]]}},
    'no dict of controllers': {'arm': [[0.1, 0.2]]},
    'no dict': [0.1, 0.2],
    'number': 3,
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What workers are told, in order."""
    told: list[str] = []
    call_async = WorkerPool.call_async

    def spy(self: WorkerPool, worker: int, method: str, *arguments: Any, **options: Any) -> Any:
        told.append(f'{method} {worker}')
        return call_async(self, worker, method, *arguments, **options)

    monkeypatch.setattr(WorkerPool, 'call_async', spy)
    return told


@pytest.mark.parametrize('bad', BAD.values(), ids=BAD)
def test_a_bad_action_for_one_worker_moves_no_env_of_any(pair: Pair, toy, bad):
    """At first, and when workers are known to take what has the signature of earlier actions."""
    pair.queue(*(toy(max_steps=50) for _ in range(ENVS)))
    pair.reset()
    for _ in range(2):
        before = pair.get_state(), pair.get_observations()
        with pytest.raises((ValueError, KeyError), match='env 3'):
            pair.step([move(), move(), move(), bad])
        assert same((pair.get_state(), pair.get_observations()), before)
        pair.step([move()] * ENVS)


def test_workers_check_first_until_they_are_known_to_take_actions_of_this_signature(pair: Pair, toy, calls: list[str]):
    def told(action: Any) -> list[str]:
        calls.clear()
        pair.step([action] * ENVS)
        return list(calls)

    first, known = ['validate 0', 'validate 1', 'step 0', 'step 1'], ['step 0', 'step 1']
    pair.queue(*[toy(max_steps=50)] * ENVS)
    pair.reset()
    assert [told(move(0.1)), told(move(0.2)), told(move(-1.0))] == [first, known, known]
    assert [told(None), told(None)] == [first, known]
    push = {'arm': {'push': [0.1, 0.1]}}  # a controller that does not say how it checks
    assert [told(push), told(push)] == [first, first]


def test_an_episode_that_cannot_be_started_changes_nothing_anywhere(pair: Pair, toy):
    ids = pair.queue(*(toy(max_steps=50) for _ in range(ENVS)))
    pair.reset()
    pair.step([move()] * ENVS)
    before = pair.get_state()
    ids = pair.queue(toy(max_steps=7), toy('nowhere.xml'), toy(max_steps=9))
    with pytest.raises(FileNotFoundError, match=r'nowhere\.xml') as caught:
        pair.reset([0, 3, 1])
    assert [note for note in caught.value.__notes__ if f'episode {ids[1]} ' in note and note.endswith('into env 3')]
    assert same(pair.get_state(), before)
    assert [take_ids(env, 3) for env in (pair.local, pair.ray)] == [ids, ids]
    pair.step([move()] * ENVS)


@pytest.mark.parametrize('where', ['load', 'post_reset', 'get_observations'])
def test_a_class_that_fails_at_its_start_leaves_only_the_envs_of_that_reset_empty(pair: Pair, toy, where, tmp_path):
    pair.queue(*(toy(max_steps=50) for _ in range(ENVS)))
    pair.reset()
    pair.step([move()] * ENVS)
    fault = {'where': where, 'what': 'raise', 'log': str(tmp_path / 'log')}
    ids = pair.queue(toy(max_steps=7), toy(fault=fault), toy(max_steps=9))
    with pytest.raises(RuntimeError, match=f'broken in {where}') as caught:
        pair.reset([0, 3, 1])
    assert any('ray_toys.py' in note for note in caught.value.__notes__)  # the place in the worker
    rest = pair.step([move()] * ENVS)
    assert [obs is None for obs in rest[0]] == [True, True, False, True]
    for env in (pair.local, pair.ray):  # all of them are at the head of the queue, in order
        episodes = [env.task_config_manager.take() for _ in ids]
        assert [episode and episode.id for episode in episodes] == ids
        env.task_config_manager.put_back([episodes[0], episodes[2]])
    obs, _ = pair.reset([1, 3])
    assert [o['place']['task'] for o in obs] == [str(ids[0]), str(ids[2])]


@pytest.mark.parametrize(('where', 'step'), [('get_observations', 1), ('is_done', 2), ('calculate_metrics', 2)])
def test_a_class_that_fails_in_a_step_costs_no_result_of_another_worker(pair: Pair, toy, where, step, tmp_path):
    fault = {'where': where, 'step': step, 'what': 'raise', 'log': str(tmp_path / 'log')}
    pair.queue(toy(max_steps=2), toy(max_steps=2, fault=fault))
    pair.reset([0, 3])
    pair.step([move()] * ENVS)
    errors = []
    for env in (pair.local, pair.ray):
        records: list[EpisodeRecord] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(env._runner.results, 'write', records.append)  # pyright: ignore
            errors.append(outcome(env.step, [move()] * ENVS))
        assert [(record.env_id, record.steps) for record in records] == [(0, 2)]
    assert isinstance(errors[0], Failure) and same(*errors)
    assert any('ray_toys.py' in note for note in errors[1].error.__notes__)  # the place in the worker


def test_gpus_that_are_not_there_are_refused(cluster, make_config):
    config = make_config().distribute(RayDistributionCfg(proc_num=2, gpu_num_per_proc=0.5))
    with pytest.raises(ValueError, match=r'2 workers with gpu_num_per_proc=0\.5 need 1 GPUs, the cluster has 0'):
        Env(config)


def test_a_working_dir_that_is_not_there_is_refused(cluster, make_config, tmp_path: Path):
    config = make_config().distribute(RayDistributionCfg(working_dir=str(tmp_path / 'none')))
    with pytest.raises(FileNotFoundError, match='working_dir: there is no such folder'):
        Env(config)


def test_the_worlds_are_elsewhere(pair: Pair):
    with pytest.raises(RuntimeError, match='this run is distributed, its tasks and robots are in other processes'):
        _ = pair.ray.runner


@pytest.mark.parametrize('env_id', [0, 3])
@pytest.mark.parametrize(
    'reward, wrong, error, message',
    [
        ('FussyReward', -1, RuntimeError, 'cannot load -1'),
        ('FussyReward', 'nothing', ValueError, r"object_state\['reward'\] is str, and was int"),
        ('RayReward', 'nothing', ValueError, 'reward: expected its attributes'),
    ],
)
def test_a_state_that_one_worker_cannot_take_changes_no_env_of_any(
    pair: Pair, toy, env_id, reward, wrong, error, message
):
    """Whether it is found by checking, or a class of an extension fails while it is loaded."""
    task = toy(max_steps=50, reward=RewardCfg(reward_type=reward))
    pair.queue(*[task] * ENVS)
    pair.reset()
    pair.step([move()] * ENVS)
    saved = pair.local.get_state()
    pair.step([move(0.3)] * ENVS)
    before = pair.get_state()
    envs = list(saved.envs)
    envs[env_id] = replace(envs[env_id], object_state={**envs[env_id].object_state, 'reward': wrong})
    with pytest.raises(error, match=message):
        pair.set_state(replace(saved, envs=tuple(envs)))
    assert same(pair.get_state(), before)
    pair.step([move()] * ENVS)
    pair.set_state(saved)
    pair.step([move()] * ENVS)


def test_a_worker_that_dies_while_a_state_is_set_takes_no_other_env_along(pair: Pair, toy, monkeypatch):
    pair.queue(*[toy(max_steps=50, tell_pid=True)] * ENVS)
    pair.ray.reset()
    saved = pair.ray.get_state()
    pair.ray.step([move()] * ENVS)
    before = pair.ray.get_state([0, 1])
    pid = pid_of(pair.ray, 2)
    call_async = WorkerPool.call_async

    def die(self: WorkerPool, worker: int, method: str, *arguments: Any, **options: Any) -> Any:
        if method == 'set_state' and worker == 1:
            kill(pid)
        return call_async(self, worker, method, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(WorkerPool, 'call_async', die)
        with pytest.raises(RuntimeError, match='worker 1 died'):
            pair.ray.set_state(saved)
    assert same(pair.ray.get_state([0, 1]), before)
    assert [info['step'] for info in pair.ray.step([move()] * ENVS)[4]][:2] == [2, 2]


@pytest.mark.slow
def test_a_forked_child_leaves_the_run_to_its_parent(pair: Pair, toy):
    pair.queue(*[toy(max_steps=50)] * ENVS)
    pair.reset()
    config = pair.ray.config
    for call in (lambda: pair.ray.step([move()] * ENVS), pair.ray.reset, pair.ray.get_state):
        assert in_fork(call).startswith('RuntimeError: Env.')
    assert in_fork(pair.ray.close) is None
    assert 'is a fork of one that was connected to Ray' in in_fork(lambda: Env(config))
    pair.step([move()] * ENVS)
