"""Overview of a run: an image of the env grid from above, with the path of every robot.

    overview = Overview(env)
    obs, task_configs = env.reset()
    overview.on_reset(range(env.env_num), obs, task_configs)
    while env.simulation_app.is_running():
        obs, _, terminated, truncated, _ = env.step(actions)
        overview.on_step(obs)
        ended = [i for i, (t, c) in enumerate(zip(terminated, truncated)) if t or c]
        if ended:
            overview.on_end(ended, obs)  # before the reset: it reads the scenes that the envs are about to leave
            overview.on_reset(ended, *env.reset(ended))
    overview.save('overview.png')  # before env.close()

Geometry is read from the engine once per env, when its last episode is over, and robots every tenth step, from
the observations of the run: it takes no longer for it. Of a large grid a corner of 8 x 8 envs is shown.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import mujoco
import numpy as np

from internutopia.cli.overview.picture import Path, PathRecorder, Surroundings, surroundings
from internutopia.config import TaskCfg
from internutopia.core.vec_env import Env

__all__ = ['Overview']

_SHOWN_SIDE = 8  # envs along each side of the grid
_SAMPLE_EVERY = 10  # steps


class _MujocoScenes(Protocol):
    """Methods of a world that this module needs beyond its contract: the engine's own objects."""

    def model(self, env_id: int) -> mujoco.MjModel: ...

    def data(self, env_id: int) -> mujoco.MjData: ...


class Overview:
    """Collector of the contents of the image while `env` runs; see the module for the calls."""

    def __init__(self, env: Env):
        config = env.config
        columns = math.isqrt(env.env_num - 1) + 1
        self._env = env
        self._shown = {i for i in range(env.env_num) if i // columns < _SHOWN_SIDE and i % columns < _SHOWN_SIDE}
        self._paths = PathRecorder()
        self._surroundings: dict[int, tuple[object, Surroundings]] = {}
        done = len(env.task_config_manager.done)
        self._unstarted = len(config.task_configs) - done if config.episode_order == 'once' else math.inf
        self._steps = 0

    @property
    def paths(self) -> list[Path]:
        """Paths so far, in the order in which their episodes started."""
        return self._paths.all()

    def on_reset(
        self,
        env_ids: Sequence[int],
        obs: Sequence[Mapping[str, Any] | None],
        task_configs: Sequence[TaskCfg | None],
    ) -> None:
        """Start the paths of new episodes; takes the results of `env.reset(env_ids)`, None entries included."""
        for env_id, env_obs, task_config in zip(env_ids, obs, task_configs, strict=True):
            if env_obs is not None and task_config is not None:
                self._unstarted -= 1
                if env_id in self._shown:
                    types = {robot.name: robot.type for robot in task_config.robots}
                    self._paths.reset(env_id, _scene_key(task_config), types, env_obs)

    def on_step(self, obs: Sequence[Mapping[str, Any] | None]) -> None:
        """Add a step; takes the observations of `env.step`."""
        self._steps += 1
        if self._steps % _SAMPLE_EVERY == 0:
            for env_id in self._shown:
                self._paths.add(env_id, obs[env_id])

    def on_end(self, env_ids: Sequence[int], obs: Sequence[Mapping[str, Any] | None]) -> None:
        """End the paths of envs that are about to be reset; `obs` are the observations of `env.step`, of all envs."""
        for order, env_id in enumerate(env_ids):
            if env_id in self._shown:
                self._paths.add(env_id, obs[env_id])
                if order >= self._unstarted:  # no episode is left for it: the scene is seen for the last time
                    self._read_scene(env_id)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Render the run so far into a PNG file; call it before the env is closed. OSError."""
        from internutopia.cli.overview.picture import render

        for env_id in self._shown & self._env.active_task_configs.keys():
            self._read_scene(env_id)
        offsets = self._env.runner.world.env_origins
        seen = {env_id: scene for env_id, (_, scene) in self._surroundings.items()}
        paths = [path for path in self.paths if self._surroundings.get(path.env_id, (None,))[0] == path.scene]
        size = self._env.runner.spacing
        figure = render({env_id: offsets[env_id, :2] for env_id in sorted(self._shown)}, size, seen, paths)
        figure.suptitle(self._title(len(paths)))
        figure.savefig(file, format='png')

    def _read_scene(self, env_id: int) -> None:
        world: Any = self._env.runner.world
        scenes: _MujocoScenes = world
        key = _scene_key(self._env.active_task_configs[env_id])
        self._surroundings[env_id] = (key, surroundings(scenes.model(env_id), scenes.data(env_id)))

    def _title(self, drawn: int) -> str:
        shown, count, paths = len(self._shown), self._env.env_num, self.paths
        envs = f'{count} env{"s" * (count > 1)}' if shown == count else f'{shown} of {count} envs'
        episodes = len({(path.env_id, path.episode) for path in paths})
        text = f'{envs}, {episodes} episode{"s" * (episodes != 1)}, {drawn} path{"s" * (drawn != 1)}'
        hidden = len(paths) - drawn
        return text + f' ({hidden} more in scenes that were shown before)' * (hidden > 0)


def _scene_key(config: TaskCfg) -> object:
    """Return a key that is equal for tasks with the same static surroundings."""
    placed = (config.scene_scale, config.scene_position, config.scene_orientation)
    return config.scene_asset_path, *(tuple(np.asarray(value).tolist()) for value in placed)
