"""Suite vector env: a task of a suite as the vector env that LeRobot's rollouts step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config import Config, TaskCfg
from internutopia.core.vec_env import Env
from internutopia.evaluation.arm_mapper import ArmMapper
from internutopia.evaluation.mapping import MappingCfg
from internutopia.evaluation.suites import NONE, EpisodeSpec, Suite

_FILM, _FILM_EVERY = (96, 96), 4  # pixels and steps, of images for videos if the policy is sent none
_IMAGES, _OTHERS = 'observation.images.', 'observation.'


def feature_key(name: str) -> str:
    """Return where LeRobot's envs have what it calls `name`: `pixels/front`, `agent_pos`, or the rest of the name.

    ValueError if it has no place for that name.
    """
    if name.startswith(_IMAGES):
        return f'pixels/{name.removeprefix(_IMAGES)}'
    if not name.startswith(_OTHERS):
        raise ValueError(
            f"mapping: LeRobot's names are 'observation.images.NAME' and 'observation.state', not {name!r}"
        )
    return 'agent_pos' if name == 'observation.state' else name.removeprefix(_OTHERS)


class SuiteVectorEnv(gym.vector.VectorEnv[Any, Any, Any]):
    """Episodes of one task, a seed for each: the episode with that number, beyond the last one from 0 on again.

    An env whose episode has ended stays as it is until all are reset, as LeRobot does. `info['is_success']` says which
    have reached their goal.

    Args:
        suite: the suite.
        task: name of the task.
        mapping: names and forms of observations and actions; the names are LeRobot's.
        num_envs: number of envs.
        perturbation: axis of perturbation.
        threads: threads of the physics; None: one per core.
        trains: True: seeds beyond the last episode to evaluate on are those to train on.

    Raises:
        ValueError: the task, the axis or a camera is unknown; the mapping has names that LeRobot has no place for.
    """

    def __init__(
        self,
        suite: Suite,
        task: str,
        mapping: MappingCfg,
        num_envs: int,
        perturbation: str = NONE,
        threads: int | None = None,
        trains: bool = False,
    ):
        self._suite, self._task, self._axis, self._threads = suite, task, perturbation, threads
        self._trains = trains
        self._mapping, self._mapper = mapping, ArmMapper(mapping, suite.arm)
        self._cameras = self._mapper.cameras or {suite.cameras[0]: _FILM}
        (example,) = suite.task_configs([task], [perturbation], 1, self._cameras)
        self._most_steps: int = getattr(example, 'max_steps')  # noqa: B009  # task configs keep fields of their own
        self.num_envs = num_envs
        self.metadata = {
            'render_fps': round(suite.steps_per_second),
            'autoreset_mode': gym.vector.AutoresetMode.DISABLED,
        }
        self.single_action_space = spaces.Box(-np.inf, np.inf, (self._mapper.size,), np.float32)
        parts: dict[str, spaces.Space[Any]] = {
            feature_key(name): spaces.Box(0, 255, (*picture.size[::-1], 3), np.uint8)
            for name, picture in mapping.observation.cameras.items()
        }
        for name, size in self._mapper.state_sizes.items():
            parts[feature_key(name)] = spaces.Box(-np.inf, np.inf, (size,), np.float32)
        self._names = {feature_key(name): name for name in (*mapping.observation.cameras, *mapping.observation.state)}
        self.single_observation_space = _nested(parts, spaces.Dict)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._env: Env | None = None
        self._next = 0
        self._tasks: list[TaskCfg] = []

    @override
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start the episodes whose numbers are the seeds; without seeds, those after the last ones.

        ValueError if one of them lacks an object that the mapping names.
        """
        first = self._next if seed is None else seed
        numbers = range(first, first + self.num_envs) if isinstance(first, int) else first
        self._next = 1 + max(number for number in numbers if number is not None)
        self.close_extras()
        episodes = [number or 0 if self._trains else (number or 0) % self._suite.episodes for number in numbers]
        self._tasks = [
            self._suite.task_config(EpisodeSpec(self._task, self._axis, number, self._cameras)) for number in episodes
        ]
        self._mapping.check_objects(self._suite, self._tasks)
        config = Config(
            simulator=self._suite.simulator(self._threads),
            env_num=self.num_envs,
            task_configs=self._tasks,
            metrics_save_path='none',
        )
        self._env = Env(config)
        observations, _ = self._env.reset()
        self._seen = [each[self._suite.arm.robot] for each in observations]
        self._targets: list[NDArray[Any] | None] = [None] * self.num_envs
        self._steps = 0
        self._ended = np.zeros(self.num_envs, bool)
        self._succeeded = np.zeros(self.num_envs, bool)
        return self._observations(), {'is_success': self._succeeded.copy()}

    @override
    def step(
        self, actions: NDArray[Any]
    ) -> tuple[dict[str, Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Step the envs whose episodes have not ended. PolicyError if an action is none."""
        assert self._env is not None, 'reset comes first'
        arm, robot = self._suite.arm, self._suite.arm.robot
        self._steps += 1
        unseen = {} if self._mapper.cameras else {arm.chunk_controller: [-self._steps % _FILM_EVERY]}
        commands: list[dict[str, Any] | None] = [None] * self.num_envs
        for env_id in np.flatnonzero(~self._ended):
            (row,) = self._mapper.rows({'action': actions[env_id]}, 1)
            command, self._targets[env_id] = self._mapper.action(row, self._seen[env_id], self._targets[env_id])
            commands[env_id] = {robot: command | unseen}
        observations, rewards, terminated, truncated, infos = self._env.step(commands)
        ended = np.array([terminated, truncated], bool) & ~self._ended
        reward = np.zeros(self.num_envs)
        for env_id in np.flatnonzero(~self._ended):
            self._seen[env_id] = observations[env_id][robot]
            if ended[:, env_id].any():
                self._succeeded[env_id] = infos[env_id]['metrics']['task']['success'] > 0.0
            reward[env_id] = float(self._succeeded[env_id])
        self._ended |= ended.any(axis=0)
        return self._observations(), reward, ended[0], ended[1], {'is_success': self._succeeded.copy()}

    def call(self, name: str) -> list[Any]:
        """Return an attribute of each env: `_max_episode_steps`, `task`, `task_description`, or pictures: `render`."""
        match name:
            case '_max_episode_steps':
                return [self._most_steps] * self.num_envs
            case 'task' | 'task_description':
                return [getattr(task, 'instruction') for task in self._tasks]  # noqa: B009
            case 'render':
                camera = next(iter(self._cameras))
                return [np.asarray(obs['sensors'][camera]['rgba'])[..., :3] for obs in self._seen]
        raise AttributeError(f'envs have no {name!r}')

    get_attr = call

    @override
    def close_extras(self, **kwargs: Any) -> None:
        if self._env is not None:
            self._env.close()
            self._env = None

    def _observations(self) -> dict[str, Any]:
        sent = [self._mapper.observation(obs, '') for obs in self._seen]
        return _nested({key: np.stack([each[name] for each in sent]) for key, name in self._names.items()}, dict)


def _nested(values: dict[str, Any], kind: Any) -> Any:
    """Return values as a mapping of a kind, with those called `pixels/...` in their own one."""
    nested = {name: value for name, value in values.items() if '/' not in name}
    pixels = {name.partition('/')[2]: value for name, value in values.items() if '/' in name}
    return kind({**nested, 'pixels': kind(pixels)} if pixels else nested)
