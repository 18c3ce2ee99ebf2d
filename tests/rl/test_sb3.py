"""`VecEnv` of Stable-Baselines3, compared with the `VectorEnv` row by row."""

from contextlib import closing

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

from internutopia.rl import VectorEnv
from internutopia.rl.sb3 import SB3VecEnv
from internutopia_extension.learning_tasks import cart_pole

LIMIT = 25  # steps; full pushes tip the pole after about 10 to 20


@pytest.fixture
def envs():
    made = SB3VecEnv(cart_pole.config(4, seed=3, max_episode_steps=LIMIT))
    yield made
    made.close()


def test_rows_are_those_of_the_vector_env(envs):
    reference = VectorEnv(cart_pole.config(4, seed=3, max_episode_steps=LIMIT), autoreset_mode=AutoresetMode.SAME_STEP)
    assert envs.seed(7) == [7, 8, 9, 10]
    np.testing.assert_array_equal(envs.reset(), reference.reset(seed=7)[0])
    rng = np.random.default_rng(0)
    ends = {'terminated': 0, 'truncated': 0}
    for _ in range(120):
        # two envs are pushed in one direction, two are hardly touched and get to the time limit
        actions = np.array([[1.0], [-1.0], [0.0], [0.0]], np.float32) + rng.uniform(-0.05, 0.05, (4, 1)).astype(
            np.float32
        )
        obs, rewards, dones, infos = envs.step(actions)
        expected_obs, expected_rewards, terminated, truncated, info = reference.step(actions)
        np.testing.assert_array_equal(obs, expected_obs)
        np.testing.assert_array_equal(rewards, expected_rewards.astype(np.float32))
        np.testing.assert_array_equal(dones, terminated | truncated)
        for i in range(4):
            assert infos[i]['TimeLimit.truncated'] == (truncated[i] and not terminated[i])
            assert ('terminal_observation' in infos[i]) == ('episode' in infos[i]) == dones[i]
            if dones[i]:
                np.testing.assert_array_equal(infos[i]['terminal_observation'], info['final_obs'][i])
                assert infos[i]['episode']['r'] == info['final_info']['episode_return'][i]
                assert infos[i]['episode']['l'] == info['final_info']['episode_length'][i]
        ends['terminated'] += terminated.sum()
        ends['truncated'] += truncated.sum()
    reference.close()
    assert ends['terminated'] > 5 and ends['truncated'] > 5


def test_the_terminal_observation_belongs_to_the_old_episode(envs):
    envs.reset()
    while True:
        obs, _, dones, infos = envs.step(np.ones((4, 1), np.float32))
        for i in np.flatnonzero(dones):
            assert abs(infos[i]['terminal_observation'][1]) > 0.2  # rad
            assert abs(obs[i, 1]) <= 0.05
        if dones.any():
            break


def test_the_episode_is_the_one_that_ended(envs):
    envs.reset()
    assert [info['episode_id'] for info in envs.reset_infos] == [0, 1, 2, 3]
    *_, infos = envs.step(np.ones((4, 1), np.float32))
    while not any('episode' in info for info in infos):
        *_, infos = envs.step(np.ones((4, 1), np.float32))
    assert [info['episode_id'] for info in infos] == [0, 1, 2, 3]


@pytest.mark.filterwarnings('ignore:The environment is already wrapped')
def test_sb3s_own_wrappers_fit(envs):
    wrapped = VecNormalize(VecMonitor(envs))
    wrapped.reset()
    lengths = []
    for _ in range(2 * LIMIT):
        *_, infos = wrapped.step(np.ones((4, 1), np.float32))
        # VecMonitor counts itself, and writes over what was there
        lengths += [info['episode']['l'] for info in infos if 'episode' in info]
    assert lengths and all(5 < length < LIMIT for length in lengths)


@pytest.mark.slow
def test_ppo_runs_and_is_evaluated(envs, recwarn):
    model = PPO('MlpPolicy', envs, n_steps=16, batch_size=64, n_epochs=1, seed=0, device='cpu')
    model.learn(128)
    assert len(model.ep_info_buffer or ()) > 0
    returns, lengths = evaluate_policy(model, envs, n_eval_episodes=4, return_episode_rewards=True)
    np.testing.assert_allclose(returns, np.array(lengths) * 0.02, rtol=1e-4)
    assert not [warning for warning in recwarn if 'Monitor' in str(warning.message)]


def test_attributes_and_methods_are_those_of_all_envs(envs):
    assert envs.get_attr('num_envs', indices=[0, 2]) == [4, 4]
    assert envs.get_attr('num_envs', indices=1) == [4]
    assert not envs.has_attr('nonsense')
    assert envs.render_mode is None and envs.get_images() == [None] * 4
    envs.set_attr('note', 'hello')
    assert envs.get_attr('note') == ['hello'] * 4
    assert envs.env_method('get_attr', 'num_envs', indices=[3]) == [(4, 4, 4, 4)]
    assert envs.env_is_wrapped(Monitor, indices=[0]) == [True]
    assert envs.env_is_wrapped(VecMonitor) == [False] * 4
    with pytest.raises(ValueError, match=r"'note' cannot be set for envs \[1\] only"):
        envs.set_attr('note', 'there', indices=[1])
    with pytest.raises(IndexError, match=r'no envs \[4\], only 0 to 3'):
        envs.get_attr('num_envs', indices=[4])


def test_a_vector_env_must_restart_in_the_same_step():
    config = cart_pole.config(2, seed=0)
    with closing(VectorEnv(config)) as next_step:
        with pytest.raises(ValueError, match="'SameStep', got 'NextStep'"):
            SB3VecEnv(next_step)
    with closing(VectorEnv(config, autoreset_mode='SameStep')) as same_step:
        with pytest.raises(ValueError, match='give it to the VectorEnv'):
            SB3VecEnv(same_step, config.task_configs[0].learning)
        assert SB3VecEnv(same_step).reset().shape == (2, 4)
