"""Step sources: what is recorded of a step, the same for the list API and the array API."""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np

from internutopia.core.config import Config
from internutopia.core.gym_env import Env as GymEnv
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.vec_env import Env
from internutopia.core.world.base import DeviceWorld
from internutopia.rl.vector_env import VectorEnv

Api = Literal['list', 'array']


class StepSource(Protocol):
    """Envs of one runner, as the program that steps them sees them."""

    api: Api
    runner: SimulatorRunner
    config: Config
    step_dt: float  # [s]

    def observation(self, env_id: int) -> Any:
        """What the program saw before the step that is about to be made: nested mappings, or an array."""
        ...

    def action(self, env_id: int) -> Any:
        """What it commands in this step: nested mappings, or an array."""
        ...

    def reward(self, env_id: int) -> float:
        """What the step that was made has paid."""
        ...


def source_of(env: Any) -> StepSource:
    """The step source of envs.

    Raises:
        TypeError: it is no env that can be recorded.
        NotImplementedError: the envs are in other processes, or on a device.
    """
    if isinstance(env, VectorEnv):
        if isinstance(env.core.runner.world, DeviceWorld):
            raise NotImplementedError('recording needs arrays of numpy: the envs of this VectorEnv are on a device')
        return _ArraySource(env)
    if isinstance(env, Env) and env.is_remote:
        raise NotImplementedError(
            'recording needs the envs in this process, and this run is distributed: record it without '
            'distribution_config (without --processes)'
        )
    if isinstance(env, Env | GymEnv):
        return _ListSource(env)
    raise TypeError(f'the recorder takes an Env, a gym_env.Env or an rl.VectorEnv, got {type(env).__name__}')


class _ListSource:
    """`vec_env.Env` and `gym_env.Env`."""

    api: Api = 'list'

    def __init__(self, env: Env | GymEnv):
        self.runner = env.runner
        self.config = self.runner.config
        self.step_dt = self.runner.world.step_dt

    def observation(self, env_id: int) -> Any:
        return self.runner.slot(env_id).last.observation

    def action(self, env_id: int) -> Any:
        return self.runner.actions[env_id]

    def reward(self, env_id: int) -> float:
        return float(self.runner.slot(env_id).last.reward or 0.0)


class _ArraySource:
    """`rl.VectorEnv`: the observation has one leaf, `state`."""

    api: Api = 'array'

    def __init__(self, env: VectorEnv):
        self._core = env.core
        self.runner = env.core.runner
        tasks = [task.model_copy(update={'learning': env.core.learning}) for task in env.core.config.task_configs]
        self.config = env.core.config.model_copy(update={'task_configs': tasks})
        self.step_dt = env.core.step_dt
        self._returns = np.zeros(self.runner.env_num)  # at the end of the last step

    def observation(self, env_id: int) -> Any:
        self._returns[env_id] = self._core.returns[env_id]
        return {'state': self._core.observations.last[env_id]}

    def action(self, env_id: int) -> Any:
        return self._core.state.actions[env_id]

    def reward(self, env_id: int) -> float:
        return float(self._core.returns[env_id] - self._returns[env_id])
