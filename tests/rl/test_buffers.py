"""Flat buffers, compared with the `VectorEnv`."""

from contextlib import closing

import numpy as np
import pytest

from internutopia.rl import VectorEnv
from internutopia.rl.buffers import FlatBuffers
from internutopia_extension.learning_tasks import cart_pole

NAMES = ('observations', 'actions', 'rewards', 'terminals', 'truncations', 'masks')
LIMIT = 25  # steps; full pushes tip the pole after about 10 to 20


def config(num_envs=4):
    return cart_pole.config(num_envs, seed=3, max_episode_steps=LIMIT)


@pytest.fixture
def envs():
    made = FlatBuffers(config())
    yield made
    made.close()


def test_the_same_arrays_are_written_in_every_step(envs):
    before = {name: getattr(envs, name) for name in NAMES}
    envs.async_reset(seed=1)
    for _ in range(5):
        envs.send(np.ones((4, 1), np.float32))
    observations, rewards, terminals, truncations, _, env_ids, masks = envs.recv()
    assert all(getattr(envs, name) is buffer for name, buffer in before.items())
    assert observations is before['observations'] and rewards is before['rewards'] and masks is before['masks']
    assert terminals is before['terminals'] and truncations is before['truncations']
    np.testing.assert_array_equal(env_ids, np.arange(4))


def test_rows_are_those_of_the_vector_env(envs):
    episodes = 0
    with closing(VectorEnv(config(), autoreset_mode='SameStep')) as reference:
        observations, infos = envs.reset(seed=7)
        np.testing.assert_array_equal(observations, reference.reset(seed=7)[0])
        assert infos == []
        actions = np.array([[1.0], [-1.0], [0.1], [0.0]], np.float32)
        for _ in range(60):
            observations, rewards, terminals, truncations, infos = envs.step(actions)
            expected_obs, expected_rewards, terminated, truncated, info = reference.step(actions)
            np.testing.assert_array_equal(observations, expected_obs)
            np.testing.assert_array_equal(rewards, expected_rewards.astype(np.float32))
            np.testing.assert_array_equal(terminals, terminated)
            np.testing.assert_array_equal(truncations, truncated)
            assert envs.masks.all()
            ended = terminated | truncated
            if not ended.any():
                assert infos == []
                continue
            (summary,) = infos
            assert summary['episodes'] == ended.sum()
            assert summary['episode_length'] == info['final_info']['episode_length'][ended].mean()
            assert summary['episode_return'] == info['final_info']['episode_return'][ended].mean()
            episodes += summary['episodes']
    assert episodes > 8


def test_actions_may_be_written_into_their_buffer():
    with closing(FlatBuffers(config())) as one, closing(FlatBuffers(config())) as other:
        one.async_reset(seed=0)
        other.async_reset(seed=0)
        one.send(np.full((4, 1), 0.7, np.float32))
        other.actions[:] = 0.7
        other.send()
        np.testing.assert_array_equal(one.observations, other.observations)
        np.testing.assert_array_equal(one.actions, other.actions)


def test_the_caller_can_give_slices_of_larger_arrays():
    pool = np.full((8, 4), np.nan, np.float32)
    ends = np.zeros((2, 8), bool)
    given = {'observations': pool[2:6], 'terminals': ends[0, 2:6]}
    with closing(FlatBuffers(config(), buffers=given)) as envs:
        envs.async_reset(seed=0)
        for _ in range(LIMIT):
            envs.send(np.ones((4, 1), np.float32))
            if envs.terminals.any():
                break
    assert np.isfinite(pool[2:6]).all() and np.isnan(pool[:2]).all() and np.isnan(pool[6:]).all()
    assert ends[0, 2:6].any() and not ends[1].any()


def test_wrong_buffers_are_named():
    read_only = np.zeros(4, np.float32)
    read_only.flags.writeable = False
    cases = {
        r"no buffer 'reward'.*'rewards'": {'reward': np.zeros(4, np.float32)},
        r"'observations' must be a writable float32 array of shape \(4, 4\), got float32 of shape \(4, 3\)": {
            'observations': np.zeros((4, 3), np.float32)
        },
        "'rewards' .*, got float64": {'rewards': np.zeros(4)},
        "'rewards' .*, read-only": {'rewards': read_only},
    }
    with closing(VectorEnv(config(), autoreset_mode='SameStep')) as envs:
        for message, buffers in cases.items():
            with pytest.raises(ValueError, match=message):
                FlatBuffers(envs, buffers=buffers)
