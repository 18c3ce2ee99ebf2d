"""What the adapters for learning libraries share: envs that restart in the step in which they end, without an end."""

from __future__ import annotations

from gymnasium.vector import AutoresetMode

from internutopia.core.config import Config
from internutopia.core.config.learning import LearningCfg
from internutopia.rl.vector_env import VectorEnv


def check_endless(config: Config) -> None:
    """ValueError if episodes run out: libraries have no way to say that an env stands still."""
    if config.episode_order == 'once':
        raise ValueError("episode_order='once': learners need episodes without an end, 'cycle' or 'shuffle'")


def same_step_envs(source: Config | VectorEnv, learning: LearningCfg | None) -> VectorEnv:
    """The envs themselves, or those of a config. ValueError if episodes run out or if they restart in another step."""
    if not isinstance(source, VectorEnv):
        check_endless(source)
        return VectorEnv(source, learning, autoreset_mode=AutoresetMode.SAME_STEP)
    if learning is not None:
        raise ValueError('learning: give it to the VectorEnv')
    check_endless(source.core.config)
    if source.autoreset_mode is not AutoresetMode.SAME_STEP:
        raise ValueError(
            f"the VectorEnv must be made with autoreset_mode='SameStep', got {source.autoreset_mode.value!r}"
        )
    return source
