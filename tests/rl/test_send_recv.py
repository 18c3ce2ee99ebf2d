"""Asynchronous groups of envs, compared with one `VectorEnv` per group."""

from contextlib import closing

import numpy as np
import pytest

from internutopia.rl import VectorEnv
from internutopia.rl.send_recv import AsyncEnvs
from internutopia_extension.learning_tasks import cart_pole

LIMIT = 25  # steps; full pushes tip the pole after about 10 to 20


def config(num_envs=1):
    return cart_pole.config(num_envs, seed=3, max_episode_steps=LIMIT)


@pytest.fixture
def envs():
    made = AsyncEnvs(config(), num_envs=6, batch_size=2)
    yield made
    made.close()


@pytest.mark.slow
def test_each_group_goes_its_own_way_whichever_is_first(envs):
    push = np.array([[1.0], [-1.0], [0.3], [0.0], [0.8], [0.0]], np.float32)
    seen: dict[int, list] = {0: [], 1: [], 2: []}
    envs.async_reset(seed=7)
    outcome = envs.recv()
    for _ in range(120):
        env_ids = outcome[-1]['env_id']
        seen[env_ids[0] // 2].append(outcome)
        outcome = envs.step(push[env_ids], env_ids)
    assert all(len(outcomes) > 3 for outcomes in seen.values())
    for group, outcomes in seen.items():
        rows = slice(2 * group, 2 * group + 2)
        with closing(VectorEnv(config(2))) as reference:
            np.testing.assert_array_equal(outcomes[0][0], reference.reset(seed=7 + group)[0])
            for obs, rewards, terminated, truncated, info in outcomes[1:]:
                expected = reference.step(push[rows])
                for got, wanted in zip((obs, rewards, terminated, truncated), expected[:4], strict=True):
                    np.testing.assert_array_equal(got, wanted)
                np.testing.assert_array_equal(info['env_id'], np.arange(6)[rows])
                np.testing.assert_array_equal(info['episode_id'], expected[4]['episode_id'])


def test_an_env_that_ended_restarts_in_its_next_step(envs):
    envs.async_reset(seed=0)
    ended: dict[int, bool] = {}
    restarts = 0
    for _ in range(150):
        obs, rewards, terminated, truncated, info = envs.recv()
        for row, env_id in enumerate(info['env_id'].tolist()):
            if ended.get(env_id):
                restarts += 1
                assert np.abs(obs[row]).max() <= 0.051 and rewards[row] == 0.0 and not terminated[row]
            ended[env_id] = bool(terminated[row] or truncated[row])
        envs.send(np.ones((2, 1), np.float32), info['env_id'])
    assert restarts > 5


def test_a_group_starts_when_all_its_envs_have_their_actions(envs):
    envs.async_reset(seed=0)
    ids = np.sort(np.concatenate([envs.recv()[-1]['env_id'] for _ in range(3)]))
    assert ids.tolist() == [0, 1, 2, 3, 4, 5]
    envs.send(np.zeros((2, 1)), [0, 3])
    with pytest.raises(RuntimeError, match='no group of envs is stepping'):
        envs.recv()
    envs.send(np.zeros((1, 1)), [2])
    assert envs.recv()[-1]['env_id'].tolist() == [2, 3]
    assert envs.step(np.zeros((1, 1)), [1])[-1]['env_id'].tolist() == [0, 1]


def test_resetting_forgets_what_is_under_way(envs):
    envs.async_reset(seed=0)
    first = {int(info['env_id'][0]): obs for obs, *_, info in (envs.recv() for _ in range(3))}
    envs.send(np.ones((3, 1)), [0, 1, 2])
    envs.async_reset(seed=0)
    again = {int(info['env_id'][0]): obs for obs, *_, info in (envs.recv() for _ in range(3))}
    assert first.keys() == again.keys()
    for env_id, obs in first.items():
        np.testing.assert_array_equal(obs, again[env_id])


def test_what_fails_in_a_step_is_raised_by_recv(envs, monkeypatch):
    def broken(actions):
        raise OSError('the disk is full')

    envs.async_reset(seed=0)
    for _ in range(3):
        envs.recv()
    monkeypatch.setattr(envs.groups[1], 'step', broken)
    envs.send(np.zeros((2, 1)), [2, 3])
    with pytest.raises(OSError, match='the disk is full'):
        envs.recv()
