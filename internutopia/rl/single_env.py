"""Single env for learners: a `gymnasium.Env` over a `VectorEnv` of one env."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.core.runner.env_cameras import Camera
from internutopia.core.runner.env_pictures import PICTURE_SIZE, RENDER_MODES
from internutopia.rl.observation_groups import each_group
from internutopia.rl.vector_env import VectorEnv

Array = NDArray[np.float32]


class SingleEnv(gymnasium.Env[Array, Any]):
    """One env with array observations and actions, defined by `TaskCfg.learning`.

    `info` is that of `VectorEnv` without the env axis: `active`, `episode_id`, after a step `failed` and, at the end of
    an episode, `episode_return`, `episode_length` and `error`.

    Args:
        config: what to run, with `env_num=1`; ValueError otherwise.
        learning: what is learned; None takes `TaskCfg.learning` of the tasks.
        render_mode: what `render` gives, see `internutopia.core.runner.env_pictures`; None for nothing.
        width: of images [pixels].
        height: of images [pixels].
        camera: camera of the images, see `internutopia.core.runner.env_cameras`; None follows the robot that learns.
    """

    metadata: dict[str, Any] = {'render_modes': list(RENDER_MODES)}

    def __init__(
        self,
        config: Config,
        learning: LearningCfg | None = None,
        *,
        render_mode: str | None = None,
        width: int = PICTURE_SIZE[0],
        height: int = PICTURE_SIZE[1],
        camera: Camera = None,
    ):
        if config.env_num != 1:
            raise ValueError(f'SingleEnv runs one env, got env_num={config.env_num}; use VectorEnv for more')
        self._envs = VectorEnv(
            *(config, learning),
            autoreset_mode=AutoresetMode.DISABLED,
            render_mode=render_mode,
            width=width,
            height=height,
            camera=camera,
        )
        self.render_mode = render_mode
        self.metadata = {key: self._envs.metadata[key] for key in ('render_modes', 'render_fps')}
        self.observation_space = self._envs.single_observation_space
        self.action_space = self._envs.single_action_space

    @property
    def config(self) -> Config:
        """Config of the env."""
        return self._envs.core.config

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Start the next episode; a seed starts randomness and endless episode orders again.

        RuntimeError when no episode is left, which only happens with `episode_order='once'`, or when the env is closed.
        """
        super().reset(seed=seed)
        obs, info = self._envs.reset(seed=seed)
        if not info['active'][0]:
            raise RuntimeError("no episode is left; `episode_order` 'cycle' and 'shuffle' never end")
        return _row(obs), _first_row(info)

    @override
    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Advance by one step; `action` is `(k,)`, or an integer if it is a choice.

        Raises:
            ValueError: the action is wrong, or the episode is over; nothing has moved.
            RuntimeError: the env was not reset yet, or is closed.
        """
        actions = self._envs.action_format.array(action)[None]
        obs, rewards, terminated, truncated, info = self._envs.step(actions)
        return _row(obs), float(rewards[0]), bool(terminated[0]), bool(truncated[0]), _first_row(info)

    @override
    def render(self) -> Any:
        """Render as `render_mode` sets; see `VectorEnv.render`."""
        return self._envs.render()[0]

    @override
    def close(self) -> None:
        """Free everything; twice is fine."""
        self._envs.close()


def _row(observations: Any) -> Any:
    """Return the observation of the only env."""
    return each_group(lambda array: array[0], observations)


def _first_row(info: dict[str, Any]) -> dict[str, Any]:
    return {key: values.tolist()[0] for key, values in info.items() if not key.startswith('_') and info[f'_{key}'][0]}
