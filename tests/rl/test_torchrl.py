"""TorchRL's envs over ids and over a `VectorEnv`."""

import gymnasium
import numpy as np
import pytest
import torch
from torchrl.envs import GymEnv, GymWrapper

CART_POLE = 'InternUtopia/CartPole-v0'


def test_gym_env_of_an_id() -> None:
    env = GymEnv(CART_POLE, threads=1, start=0.0)
    env.set_seed(0)
    rollout = env.rollout(8)
    assert rollout['observation'].shape == (8, 4) and rollout['observation'].dtype == torch.float32
    torch.testing.assert_close(rollout['next', 'reward'], torch.full((8, 1), 0.02))
    env.close()


@pytest.mark.parametrize('mode', ['Disabled', 'SameStep'])
def test_gym_wrapper_of_batched_envs(mode: str) -> None:
    env = GymWrapper(gymnasium.make_vec(CART_POLE, num_envs=3, threads=1, max_episode_steps=5, autoreset_mode=mode))
    rollout = env.rollout(12, break_when_any_done=False)
    assert rollout.shape == (3, 12)
    assert rollout['next', 'done'].squeeze(-1).any(-1).all()
    env.close()


@pytest.mark.slow
def test_gym_env_with_a_process_for_each_env() -> None:
    env = GymEnv(f'internutopia:{CART_POLE}', num_envs=2, threads=1)  # processes are started afresh
    assert env.rollout(4)['observation'].shape == (2, 4, 4)
    env.close()


def test_an_unknown_option_is_a_type_error_with_pythons_words() -> None:
    for make in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(TypeError, match="unexpected keyword argument 'pole_lenght'; did you mean 'pole_length'"):
            make(CART_POLE, pole_lenght=np.float64(1.0))
