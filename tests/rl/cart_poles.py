"""Cart-poles and actions on them, for tests of `VectorEnv`."""

from typing import Any

import gymnasium as gym
import numpy as np

from internutopia.config import Config
from internutopia.rl import VectorEnv
from internutopia_extension.learning_tasks import cart_pole


def carts(num_envs: int = 3, order: str = 'cycle', tasks: int = 1, **options: Any) -> Config:
    """Cart-poles that all start upright and at rest, unless told otherwise."""
    config = cart_pole.config(num_envs, 0, **{'start': 0.0, 'threads': 1, **options})
    return config.model_copy(update={'episode_order': order, 'task_configs': config.task_configs * tasks})


def actions_of(envs: gym.vector.VectorEnv, steps: int, seed: int = 0) -> np.ndarray:
    """Pushes that differ between envs, so that poles fall at different times."""
    rng = np.random.default_rng(seed)
    shape = envs.action_space.shape
    assert shape is not None
    return rng.uniform(-1.0, 1.0, (steps, *shape)).astype(np.float32)


def outcome_of(envs: VectorEnv, actions: np.ndarray) -> list[np.ndarray]:
    """Observations, rewards, terminated, truncated of all steps."""
    return [np.stack(column) for column in zip(*(envs.step(action)[:4] for action in actions), strict=True)]
