"""`send` and `recv` in one process, whose envs make their steps together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.core.vec_env import Env

ENVS = 3


def drive(x: float) -> dict[str, Any]:
    return {'arm': {'drive': [x, -x]}}


def positions(obs: list[Any]) -> list[Any]:
    return [None if o is None else o['arm']['joint_positions'].tolist() for o in obs]


@pytest.fixture
def env(make_env) -> Env:
    """Three envs that run, and a queue of five."""
    env = make_env(tasks=5, env_num=ENVS)
    env.reset()
    return env


def test_results_are_those_of_step(env: Env, make_env):
    twin = make_env(tasks=5, env_num=ENVS)
    twin.reset()
    for k in range(6):  # the episodes end at step 5
        actions = [drive(0.1 * (k + i)) for i in range(ENVS)]
        env.send(actions[::-1], [2, 1, 0])
        *got, env_ids = env.recv()
        expected = twin.step(actions)
        assert env_ids == [0, 1, 2]
        assert positions(got[0]) == positions(expected[0])
        assert got[1:] == list(expected[1:])


def test_a_step_begins_when_every_env_that_runs_has_its_action(env: Env):
    before = positions(env.get_observations())
    env.send([drive(0.5)], [1])
    with pytest.raises(ValueError, match='recv: min_envs=1, but 0 envs are stepping; a group of envs begins'):
        env.recv()
    env.send([None, drive(0.5)], [2, 0])
    obs, *_, env_ids = env.recv(3)
    assert env_ids == [0, 1, 2] and positions(obs) != before


def test_envs_that_do_not_run_need_no_action(env: Env):
    env.reset([0, 1])
    env.reset([2])  # the queue of five is exhausted
    env.send([None, None], [0, 1])
    obs, _, _, _, _, env_ids = env.recv()
    assert env_ids == [0, 1, 2] and obs[2] is None
    env.reset()  # nothing is left
    env.send([None], [1])
    assert env.recv()[0] == [None] * ENVS


def test_an_action_is_sent_once(env: Env):
    env.send([None], [1])
    with pytest.raises(ValueError, match='send: env 1 already has an action; call recv first'):
        env.send([None, None], [0, 1])
    env.send([None, None], [0, 2])
    with pytest.raises(ValueError, match='send: env 0 already has an action'):
        env.send([None], [0])
    assert env.recv()[4][0]['step'] == 1
    with pytest.raises(ValueError, match='0 envs are stepping'):
        env.recv()


@pytest.mark.parametrize('min_envs', [0, 4, -1])
def test_no_more_results_than_envs_at_work(env: Env, min_envs: int):
    env.send([None] * ENVS, range(ENVS))
    with pytest.raises(ValueError, match=f'min_envs={min_envs}, but 3 envs are stepping'):
        env.recv(min_envs)
    env.recv(3)


@pytest.mark.parametrize(
    'call',
    [
        lambda env: env.step([None] * ENVS),
        lambda env: env.reset([0]),
        lambda env: env.get_observations(),
        lambda env: env.warm_up(),
        lambda env: env.render(),
        lambda env: env.get_state([0]),
        lambda env: env.set_state(None),
    ],
)
def test_envs_at_work_are_left_alone(env: Env, call: Any):
    env.send([None] * ENVS, range(ENVS))
    with pytest.raises(RuntimeError, match='env 0 is stepping; call recv first'):
        call(env)
    assert env.recv()[4][0]['step'] == 1


@pytest.mark.parametrize('bad', [drive(np.nan), {'leg': {}}, {'arm': {'fly': 0}}, 7])
def test_a_bad_action_moves_nothing_and_can_be_sent_anew(env: Env, bad: Any):
    before = positions(env.get_observations())
    env.send([drive(0.5)], [0])
    with pytest.raises((ValueError, KeyError), match='env 2'):
        env.send([drive(0.5), bad], [1, 2])
    assert positions(env.get_observations()) == before
    env.send([drive(0.5), drive(0.5)], [1, 2])
    obs = env.recv()[0]
    assert positions(obs)[0] == positions(obs)[1] == positions(obs)[2] != before[0]


def test_a_reset_or_a_step_forgets_what_was_sent_before(env: Env):
    env.send([drive(0.5)], [0])
    env.reset([0])
    env.send([drive(0.5), drive(0.5)], [1, 2])
    env.send([None], [0])
    assert env.recv()[4][0]['step'] == 1
    env.send([drive(0.5)], [0])
    env.step([None] * ENVS)
    env.send([None] * ENVS, range(ENVS))
    assert env.recv()[4][0]['step'] == 3


@pytest.mark.parametrize(
    ('actions', 'env_ids', 'message'),
    [
        ([None], [3], r'env_ids: 3 is not an env id; expected integers in 0\.\.2'),
        ([None, None], [1, 1], 'env_ids: env 1 is listed twice'),
        ([None], [0, 1], 'send takes one action per env: got 1 actions for 2 envs'),
        ({'arm': {}}, [0], 'send takes a list with one action per env, got dict'),
        ([None], 0, 'env_ids must be a list of env ids, got 0'),
        ([None], 'all', "env_ids must be a list of env ids, got 'all'"),
    ],
)
def test_lists_are_checked(env: Env, actions: Any, env_ids: Any, message: str):
    with pytest.raises(ValueError, match=message):
        env.send(actions, env_ids)


def test_a_closed_env_neither_sends_nor_receives(env: Env):
    env.send([None] * ENVS, range(ENVS))
    env.close()
    with pytest.raises(RuntimeError, match='recv: this Env is closed'):
        env.recv()
    with pytest.raises(RuntimeError, match='send: this Env is closed'):
        env.send([], [])
