"""Gymnasium env with one robot (or none)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from internutopia.config import Config, DistributedConfig, TaskCfg
from internutopia.config.config import check_config
from internutopia.core import vec_env
from internutopia.core.observations import StepResult
from internutopia.core.runner.env_cameras import Camera
from internutopia.core.runner.env_pictures import PICTURE_SIZE, RENDER_MODES, EnvPictures, checked_render_mode
from internutopia.core.runner.interfaces import WorkerEnvs
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.util.call_guard import CallGuard, closing, exclusive, reading
from internutopia.util.conventions import conventions_of


def space_of(value: Any) -> spaces.Space[Any]:
    """Return the space of observations like this one: unbounded boxes for arrays, two values for a bool.

    Records of varying number (a list of dicts, or an empty list) are left out of the space of what they are in. Raises
    TypeError for a value that no space holds.
    """
    if isinstance(value, Mapping):
        return spaces.Dict({k: space_of(v) for k, v in value.items() if not _has_no_space(v)})
    if isinstance(value, bool | np.bool_):
        return spaces.Discrete(2)
    if isinstance(value, int | np.integer):
        return spaces.Discrete(np.iinfo(np.int64).max)
    array = np.asarray(value)
    if array.dtype.kind == 'f':
        return spaces.Box(-np.inf, np.inf, array.shape, array.dtype.type)
    if array.dtype.kind in 'iu':
        limits = np.iinfo(array.dtype)
        return spaces.Box(limits.min, limits.max, array.shape, array.dtype.type)
    raise TypeError(f'no gymnasium space holds an observation like {value!r}')


def _has_no_space(value: Any) -> bool:
    if isinstance(value, Mapping):
        return not value  # gymnasium allows no empty Dict inside another
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def conform(value: Any, space: spaces.Space[Any]) -> Any:
    """Convert an observation to the exact types of its space; missing values and None become zero."""
    if isinstance(space, spaces.Dict):
        value = value or {}
        return {key: conform(value.get(key), item) for key, item in space.items()}
    if isinstance(space, spaces.Discrete):
        return np.int64(0 if value is None else value)
    assert isinstance(space, spaces.Box)
    return np.zeros(space.shape, space.dtype) if value is None else np.asarray(value, space.dtype)


_BEFORE_RESET = StepResult({}, 0.0, False, False, None)  # of a step before the first reset, where that is allowed


class GymEnv(gymnasium.Env):
    """`gymnasium.Env` over a queue of episodes: `reset` starts the next one.

    Actions are `{controller name: controller action}`, observations those of the task's robot. `action_space` and
    `observation_space` are built from the robot, controllers and sensors of the first task; what later tasks add to the
    observations is left out, what they lack is zero.

    Args:
        config: what to run, with `env_num=1`, one process, and at most one robot a task; ValueError otherwise.
        render_mode: return value of `render`, see `internutopia.core.runner.env_pictures`; None for nothing.
        width: of images [pixels].
        height: of images [pixels].
        camera: camera of the images, see `internutopia.core.runner.env_cameras`; None follows the robot.
    """

    RESET_INFO_TASK_CONFIG = 'task_config'
    metadata: dict[str, Any] = {'render_modes': list(RENDER_MODES)}

    def __init__(
        self,
        config: Config,
        render_mode: str | None = None,
        width: int = PICTURE_SIZE[0],
        height: int = PICTURE_SIZE[1],
        camera: Camera = None,
    ):
        self._guard = CallGuard(self)
        check_config(config, 'GymEnv')
        self.render_mode = checked_render_mode(render_mode)
        if config.env_num != 1:
            raise ValueError(f'gym_env.Env runs one env, got env_num={config.env_num}; use vec_env.Env for more')
        distribution = config.distribution_config if isinstance(config, DistributedConfig) else None
        if distribution is not None and distribution.proc_num != 1:
            raise ValueError(
                f'gym_env.Env runs one env, got {distribution.proc_num} processes; use vec_env.Env for more'
            )
        for index, task in enumerate(config.task_configs):
            if len(task.robots) > 1:
                raise ValueError(
                    f'gym_env.Env runs one robot; task_configs[{index}] has {len(task.robots)}: use vec_env.Env'
                )
        self.action_space, self.observation_space = spaces.Dict({}), spaces.Dict({})
        if conventions_of(config.compat).has_spaces:  # first, so that the Env below is the one that was made last
            self.action_space, self.observation_space = _spaces(config)
        self._env = vec_env.Env(config)
        self._env.conventions.unrewarded = 0.0
        simulator = config.simulator
        step_dt = float(simulator.physics_dt) * simulator.substeps
        self.metadata = {'render_modes': list(RENDER_MODES), 'render_fps': round(1.0 / step_dt)}
        local = None if self._env.is_remote else self._env.runner
        self._pictures = local and EnvPictures(self, local, render_mode, camera, (width, height))
        self.env_num = 1
        self._robot_name: str | None = None  # of the episode that runs
        self._was_reset = False

    @property
    def runner(self) -> SimulatorRunner:
        """Runner that steps the env."""
        return self._env.runner

    @property
    def workers(self) -> WorkerEnvs | None:
        """Worker processes of a distributed run; None in a run of this process."""
        return self._env.workers

    @property
    def simulation_app(self) -> vec_env.SimulationApp:
        """Handle whose `is_running()` is False when nothing is left to do."""
        return self._env.simulation_app

    @property
    def is_render(self) -> None:
        """Always None; kept for scripts that read it."""
        return None

    @property
    def active_task_configs(self) -> dict[int, TaskCfg]:
        """Running task config, by env id (0)."""
        return self._env.active_task_configs

    @exclusive
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Start the next episode.

        With a seed, `episode_order` `'cycle'` and `'shuffle'` start over, so that the same seed gives the same
        episodes.

        Returns:
            Observation and `{'task_config': TaskCfg}`; `(None, None)` after the last episode.
        """
        super().reset(seed=seed)
        if seed is not None:
            self._env.task_config_manager.restart(seed)
        (obs,), (task_config,) = self._env.reset()
        self._was_reset = True
        if task_config is None:
            return None, None
        self._robot_name = task_config.robots[0].name if task_config.robots else None
        if self._pictures is not None:
            self._pictures.on_reset(everywhere=True)
        return self._robot_obs(obs), {Env.RESET_INFO_TASK_CONFIG: task_config}

    @exclusive
    def step(self, action: dict[str, Any]) -> tuple[Any, Any, Any, Any, Any]:
        """Advance the env; see `vec_env.Env.step`. Five times None after the last episode."""
        actions = action if self._robot_name is None else {self._robot_name: action}
        (obs,), (reward,), (terminated,), (truncated,), (info,) = self._env.step([actions])
        if not self._was_reset:
            return _BEFORE_RESET
        if self._pictures is not None:
            self._pictures.on_step()
        return None if info is None else self._robot_obs(obs), reward, terminated, truncated, info

    @reading
    def get_observations(self) -> Any:
        """Return the current observation; None without an episode."""
        (obs,) = self._env.get_observations()
        return None if obs is None else self._robot_obs(obs)

    @exclusive
    def warm_up(self, steps: int = 10, render: bool = True, physics: bool = True) -> None:
        """Advance physics without commands; see `vec_env.Env.warm_up`."""
        self._env.warm_up(steps, render, physics)

    def get_dt(self) -> float:
        """Return the length of one physics step [s]."""
        return self._env.get_dt()

    @reading
    def render(self, mode: str = 'human') -> Any:
        """Render according to `render_mode`, see `internutopia.core.runner.env_pictures`; None without a mode.

        `mode` is accepted for 2.x scripts.
        """
        if self._pictures is None:
            return None if self.render_mode is None else self._env.render()
        return self._pictures.render()[0]

    def finished(self) -> bool:
        """Return True if every episode has been run to its end."""
        return self._env.finished()

    @closing
    def close(self) -> None:
        """Free everything; idempotent."""
        if self._pictures is not None:
            self._pictures.close()
        self._env.close()

    def _robot_obs(self, obs: dict[str, Any] | None) -> Any:
        robot_obs = (obs or {}).get(self._robot_name or '', {})
        return conform(robot_obs, self.observation_space) if self._env.conventions.has_spaces else robot_obs


def _spaces(config: Config) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """Return action and observation space, found by starting the first task in a separate env."""
    changes: dict[str, Any] = {'task_configs': config.task_configs[:1], 'metrics_save_path': None}
    if isinstance(config, DistributedConfig):
        changes['distribution_config'] = None  # controllers and sensors are queried here
    probe = vec_env.Env(config.model_copy(update=changes))
    try:
        (obs,), _ = probe.reset()
        (task,) = probe.runner.current_tasks.values()
        if not task.robots:
            return spaces.Dict({}), spaces.Dict({})
        ((name, robot),) = task.robots.items()
        assert obs is not None
        controllers = robot.get_controllers()
        observation_space = space_of({**obs[name], 'controllers': {}})
        assert isinstance(observation_space, spaces.Dict)
        reported = {k: c.observation_space() or space_of(obs[name]['controllers'][k]) for k, c in controllers.items()}
        reported = {key: space for key, space in reported.items() if space != spaces.Dict({})}
        if reported:  # gymnasium allows no empty Dict inside another
            observation_space['controllers'] = spaces.Dict(reported)
        return spaces.Dict({key: c.action_space() for key, c in controllers.items()}), observation_space
    finally:
        probe.close()


Env = GymEnv  # its name in 2.x
