"""Envs for the adapters of learning libraries: endless, and reset in the step in which an episode ends."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.rl.vector_env import VectorEnv

EnvsT = TypeVar('EnvsT', bound=GymnasiumVectorEnv[Any, Any, Any])


def check_endless(config: Config) -> None:
    """Raise ValueError if episodes run out: the libraries have no way to report an idle env."""
    if config.episode_order == 'once':
        raise ValueError("episode_order='once': learners need episodes without an end, 'cycle' or 'shuffle'")


def same_step_envs(
    source: Config | EnvsT, learning: LearningCfg | None, arrays: Literal['numpy', 'torch'] = 'numpy'
) -> VectorEnv | EnvsT:
    """Return the envs themselves, local or remote, or those of a config, with arrays of that kind.

    ValueError if (as far as it is known here) episodes run out, or if they are reset in another step.
    """
    if isinstance(source, Config):
        check_endless(source)
        return VectorEnv(source, learning, autoreset_mode=AutoresetMode.SAME_STEP, arrays=arrays)
    if learning is not None:
        raise ValueError('learning: give it to the VectorEnv')
    if isinstance(source, VectorEnv):
        check_endless(source.core.config)
    mode = source.metadata['autoreset_mode']
    if mode is not AutoresetMode.SAME_STEP:
        raise ValueError(f"the VectorEnv must be made with autoreset_mode='SameStep', got {mode.value!r}")
    return source
