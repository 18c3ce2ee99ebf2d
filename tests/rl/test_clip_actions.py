"""Actions outside of the action space, in the array API and its adapters: taken as they are, or clipped."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from internutopia.config import Config
from internutopia.config.learning import ObservationTermCfg
from internutopia.rl import SingleEnv, VectorEnv
from internutopia.rl.buffers import FlatBuffers
from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.sb3 import SB3VecEnv
from internutopia.rl.send_recv import AsyncEnvs
from internutopia.rl.task_envs import with_learning
from internutopia_extension.learning_tasks import cart_pole


def vector(config: Config, action: float) -> np.ndarray:
    envs = VectorEnv(config)
    envs.reset(seed=0)
    return envs.step(np.full((1, 1), action, np.float32))[0]


def single(config: Config, action: float) -> np.ndarray:
    env = SingleEnv(config)
    env.reset(seed=0)
    return np.asarray(env.step(np.full(1, action, np.float32))[0])


def sb3(config: Config, action: float) -> np.ndarray:
    envs: Any = SB3VecEnv(config)
    envs.seed(0)
    envs.reset()
    return np.asarray(envs.step(np.full((1, 1), action, np.float32))[0])


def rsl_rl(config: Config, action: float) -> np.ndarray:
    envs = RslRlVecEnv(config)
    envs.seed(0)
    policy: Any = envs.step(torch.full((1, 1), action))[0]['policy']
    return policy.numpy()


def buffers(config: Config, action: float) -> np.ndarray:
    envs = FlatBuffers(config)
    envs.reset(seed=0)
    return envs.step(np.full((1, 1), action, np.float32))[0].copy()


def send_recv(config: Config, action: float) -> np.ndarray:
    envs = AsyncEnvs(config, num_envs=1, batch_size=1)
    envs.async_reset(seed=0)
    info = envs.recv()[-1]
    return envs.step(np.full((1, 1), action, np.float32), info['env_id'])[0]


@pytest.mark.parametrize('step', [vector, single, sb3, rsl_rl, buffers, send_recv])
def test_every_adapter_clips_where_the_config_says_so(step: Callable[[Config, float], np.ndarray]) -> None:
    free = seen(cart_pole.config(threads=1))
    to_the_space, to_a_number = (with_learning(free, clip_actions=clip) for clip in (True, 0.25))
    assert step(free, 3.0).item() == 3.0, 'taken as it is by default'
    assert step(to_the_space, 3.0).item() == 1.0 and step(to_the_space, -0.5).item() == -0.5
    assert step(to_a_number, -3.0).item() == -0.25


def seen(config: Config) -> Config:
    """The same with the last action as the observation."""
    return with_learning(config, observations=[ObservationTermCfg(term='last_action')])


def test_ids_take_it_as_an_option() -> None:
    env: Any = gymnasium.make('InternUtopia/Franka-Reach-v0', clip_actions=0.5, threads=1)
    env.reset(seed=0)
    assert env.step(np.full(7, 3.0, np.float32))[0][-7:].tolist() == [0.5] * 7
    env.close()
