"""`VecEnv` of rsl_rl, compared with the `VectorEnv` row by row."""

from typing import Any

import numpy as np
import pytest
import torch
from rsl_rl.runners import OnPolicyRunner
from warp_device import DEVICE

from internutopia.config.learning import ObservationTermCfg
from internutopia.rl import VectorEnv
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.task_envs import with_learning
from internutopia.rl.training.engine import Engine
from internutopia_extension.learning_tasks import cart_pole

ROUNDING = 0.0 if DEVICE == 'cpu' else 1e-4  # on a GPU sums come in any order
LIMIT = 25  # steps; full pushes tip the pole after about 10 to 20


def config(num_envs=4):
    """Cart-poles whose critic sees the last action, too."""
    made = cart_pole.config(num_envs, seed=3, max_episode_steps=LIMIT)
    learning = made.task_configs[0].learning
    assert learning is not None
    learning.critic_observations = [ObservationTermCfg(term='last_action')]
    return made


@pytest.fixture
def envs():
    made = RslRlVecEnv(config())
    yield made
    made.close()


def test_rows_are_those_of_the_vector_env(envs):
    reference = VectorEnv(config(), autoreset_mode='SameStep')
    reference.reset(seed=7)
    assert envs.seed(7) == 7
    rng = np.random.default_rng(0)
    time_outs = ends = 0
    for _ in range(60):
        push = np.array([[1.0], [-1.0], [0.0], [0.0]], np.float32)
        actions = push + rng.uniform(-0.05, 0.05, (4, 1)).astype(np.float32)
        obs, rewards, dones, extras = envs.step(torch.from_numpy(actions))
        expected_obs, expected_rewards, terminated, truncated, _ = reference.step(actions)
        np.testing.assert_array_equal(obs['policy'], expected_obs)
        np.testing.assert_array_equal(obs['critic'], reference.critic_observations())
        np.testing.assert_array_equal(rewards, expected_rewards.astype(np.float32))
        np.testing.assert_array_equal(dones, terminated | truncated)
        np.testing.assert_array_equal(extras['time_outs'], truncated & ~terminated)
        ends += terminated.sum()
        time_outs += int(extras['time_outs'].sum())
    reference.close()
    assert ends > 2 and time_outs > 2


def test_shapes_and_types(envs):
    assert (envs.num_envs, envs.num_actions, envs.max_episode_length) == (4, 1, LIMIT)
    obs, rewards, dones, extras = envs.step(torch.zeros(4, 1))
    assert obs.batch_size == torch.Size([4])
    assert obs['policy'].shape == (4, 4) and obs['critic'].shape == (4, 5)
    assert obs['policy'].dtype == rewards.dtype == torch.float32
    assert rewards.shape == dones.shape == extras['time_outs'].shape == (4,)
    assert (dones.dtype, extras['time_outs'].dtype) == (torch.int64, torch.bool)
    assert envs.cfg['env_num'] == 4


def test_the_critic_sees_the_privileged_part_behind_the_observation(envs):
    actions = torch.tensor([[0.1], [0.2], [0.3], [0.4]])
    obs, *_ = envs.step(actions)
    torch.testing.assert_close(obs['critic'], torch.cat([obs['policy'], actions], dim=-1), rtol=0.0, atol=0.0)


def test_observations_are_the_callers_own(envs):
    obs = envs.get_observations()
    obs['policy'][:] = 100.0
    assert (envs.get_observations()['policy'].abs() < 1.0).all()


def test_ages_can_be_set_and_cut_episodes_earlier(envs):
    envs.step(torch.zeros(4, 1))
    assert envs.episode_length_buf.tolist() == [1, 1, 1, 1]
    envs.episode_length_buf = torch.tensor([0, 10, LIMIT - 1, LIMIT - 2])
    _, _, dones, extras = envs.step(torch.zeros(4, 1))
    assert dones.tolist() == [0, 0, 1, 0] and extras['time_outs'].tolist() == [False, False, True, False]
    assert envs.episode_length_buf.tolist() == [1, 11, 0, LIMIT - 1]


def on_device():
    """The same on a device."""
    return Engine('mujoco_warp', DEVICE).compute(config())


@pytest.mark.slow
def test_on_a_device_rows_are_those_of_the_vector_env():
    envs = RslRlVecEnv(on_device())
    reference = VectorEnv(on_device(), autoreset_mode='SameStep', arrays='torch')
    reference.reset(seed=7)
    envs.seed(7)
    assert envs.device == torch.device(DEVICE)
    ages: Any = torch.tensor([0, 10, LIMIT - 4, LIMIT - 2], device=DEVICE)
    envs.episode_length_buf = ages
    reference.core.state.steps[:] = ages
    push = torch.tensor([[1.0], [-1.0], [0.0], [0.0]], device=DEVICE)
    ends = time_outs = 0
    for step in range(30):
        actions = push + 0.01 * step
        obs, rewards, dones, extras = envs.step(actions)
        expected_obs, expected_rewards, terminated, truncated, _ = reference.step(actions)
        torch.testing.assert_close(obs['policy'], expected_obs, rtol=0.0, atol=ROUNDING)
        torch.testing.assert_close(obs['critic'], reference.critic_observations(), rtol=0.0, atol=ROUNDING)
        torch.testing.assert_close(rewards, expected_rewards, rtol=0.0, atol=ROUNDING)
        assert dones.tolist() == (terminated | truncated).tolist() and dones.dtype == torch.int64
        assert extras['time_outs'].tolist() == (truncated & ~terminated).tolist()
        torch.testing.assert_close(envs.episode_length_buf, reference.core.state.steps, rtol=0.0, atol=ROUNDING)
        ends += int(terminated.sum())
        time_outs += int(extras['time_outs'].sum())
    reference.close()
    envs.close()
    assert ends > 2 and time_outs > 1


@pytest.mark.slow
def test_on_a_device_nothing_leaves_it_in_a_step(monkeypatch):
    envs = RslRlVecEnv(with_learning(on_device(), clip_actions=0.5))
    actions = torch.ones(4, 1, device=DEVICE)
    for _ in range(LIMIT + 1):
        envs.step(actions)

    def refuse(*_, **__):
        raise AssertionError('the host would have to wait')

    with monkeypatch.context() as patch:
        for name in ('cpu', 'item', 'tolist', 'nonzero', '__bool__', '__float__', '__int__', '__array__'):
            patch.setattr(torch.Tensor, name, refuse)
        ends = torch.stack([envs.step(actions)[2] for _ in range(LIMIT)])
    assert ends.any(dim=0).all()
    envs.close()


@pytest.mark.parametrize('make', [config, on_device])
def test_envs_that_were_stepped_in_inference_mode_go_on_outside_of_it(make):
    """As rsl_rl steps them; tensors that are made in that mode could not be changed outside."""
    envs = RslRlVecEnv(make())
    with torch.inference_mode():
        for _ in range(3):
            envs.step(torch.ones(4, 1))
    obs, *_ = envs.step(torch.ones(4, 1))
    obs['policy'] += 1.0
    envs.episode_length_buf = torch.zeros(4, dtype=torch.int64)
    envs.seed(0)
    envs.close()


def test_the_runner_runs(envs, tmp_path, capsys):
    model = {'class_name': 'MLPModel', 'hidden_dims': [8]}
    training = {
        'num_steps_per_env': 8,
        'save_interval': 10,
        'obs_groups': {'actor': ['policy'], 'critic': ['critic']},
        'actor': {**model, 'distribution_cfg': {'class_name': 'GaussianDistribution'}},
        'critic': model,
        'algorithm': {'class_name': 'PPO', 'num_learning_epochs': 1, 'num_mini_batches': 1},
    }
    runner = OnPolicyRunner(envs, training)
    runner.learn(2, init_at_random_ep_len=True)
    assert runner.current_learning_iteration == 1
    assert runner.alg.critic.obs_dim == 5
