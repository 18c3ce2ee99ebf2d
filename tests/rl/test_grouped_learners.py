"""Learning libraries on named groups of observations: pictures and numbers side by side."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from rsl_rl.runners import OnPolicyRunner
from stable_baselines3 import PPO
from torchrl.envs import GymEnv

from internutopia.config import Config
from internutopia.config.learning import PictureGroupCfg
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.sb3_model import save_model
from internutopia.rl.task_envs import with_learning
from internutopia.rl.training.loading import load_trained
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import reach_block

import_extensions()
REACH_BLOCK = 'InternUtopia/Franka-ReachBlock-v0'
LIMIT = 6  # steps of an episode


@pytest.fixture
def config(opengl: None) -> Config:
    return reach_block.config(2, 0, size=40, max_episode_steps=LIMIT, threads=1)


@pytest.mark.slow
def test_the_block_is_seen_where_it_lies(opengl: None) -> None:
    envs: Any = SB3VecEnv(reach_block.config(6, 0, size=40, threads=1))
    obs: Any = envs.reset()
    picture, way = obs['camera/front'].astype(int), np.asarray(envs.envs.critic_observations()['critic'])
    red = (picture[..., 0] > 100) & (picture[..., 1] < 60) & (picture[..., 2] < 60)
    assert red.any((1, 2)).all()
    columns = [np.flatnonzero(each.any(0)).mean() for each in red]
    tip = envs.envs.core.state.link_position('right_gripper')
    left = (way + tip)[:, 1]  # of the block: the camera looks back, so that is to the right of the picture
    assert left.std() > 0.05 and np.corrcoef(columns, left)[0, 1] > 0.97
    envs.close()


@pytest.mark.slow
def test_stable_baselines_learns_by_its_policy_for_dicts(config: Config, tmp_path: Path) -> None:
    envs = SB3VecEnv(config)
    model = PPO('MultiInputPolicy', envs, n_steps=2 * LIMIT, batch_size=8, n_epochs=1, device='cpu', seed=0)
    model.learn(4 * LIMIT)
    extractors: Any = model.policy.features_extractor
    assert type(extractors.extractors['camera/front']).__name__ == 'NatureCNN'
    save_model(model, tmp_path / 'reach.zip', REACH_BLOCK)
    seen: Any = envs.reset()
    loaded = load_trained(tmp_path / 'reach.zip').act(seen)
    np.testing.assert_allclose(loaded, model.predict(seen, deterministic=True)[0], atol=1e-5)
    envs.step_async(np.zeros((2, 7), np.float32))
    for _ in range(LIMIT):
        _, _, dones, infos = envs.step(np.zeros((2, 7), np.float32))
        if dones.any():
            last = infos[0]['terminal_observation']
            assert last['camera/front'].shape == (40, 40, 3) and last['joints'].shape == (21,)
            break
    else:
        raise AssertionError('no episode ended')
    envs.close()


@pytest.mark.slow
def test_rsl_rl_learns_by_its_own_groups_and_convolutions(config: Config) -> None:
    learning = config.task_configs[0].learning
    assert learning is not None and isinstance(learning.observations, dict)
    camera = {'camera/front': PictureGroupCfg(camera='front', layout='chw')}
    envs = RslRlVecEnv(with_learning(config, observations=learning.observations | camera))
    network = {'class_name': 'MLPModel', 'hidden_dims': [16], 'activation': 'elu'}
    convolutions = {'output_channels': [4], 'kernel_size': 4, 'stride': 4, 'activation': 'elu'}
    gaussian = {'class_name': 'GaussianDistribution', 'init_std': 0.5, 'std_type': 'scalar'}
    settings = {
        'num_steps_per_env': 4,
        'save_interval': 100,
        'obs_groups': {'actor': ['joints', 'camera/front'], 'critic': ['joints', 'critic']},
        'algorithm': {'class_name': 'PPO', 'num_learning_epochs': 1, 'num_mini_batches': 1},
        'actor': {**network, 'class_name': 'CNNModel', 'cnn_cfg': convolutions, 'distribution_cfg': gaussian},
        'critic': network,
    }
    OnPolicyRunner(envs, settings, log_dir=None, device='cpu').learn(2)
    seen = envs.get_observations()
    assert set(seen.keys()) == {'joints', 'camera/front', 'critic'} and seen['critic'].shape == (2, 3)
    assert seen['camera/front'].shape == (2, 3, 40, 40) and 0.2 < seen['camera/front'].max() <= 1.0
    envs.close()


@pytest.mark.slow
def test_torchrl_has_a_key_for_each_group(opengl: None) -> None:
    assert gymnasium.spec(REACH_BLOCK).id == REACH_BLOCK
    env = GymEnv(REACH_BLOCK, threads=1, size=20)
    rollout = env.rollout(3)
    assert rollout['camera/front'].shape == (3, 20, 20, 3) and rollout['camera/front'].dtype == torch.uint8
    assert rollout['joints'].shape == (3, 21)
    env.close()
