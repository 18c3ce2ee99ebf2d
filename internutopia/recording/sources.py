"""Step sources: the recorded data of a step, the same for the list API and the array API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config import Config
from internutopia.core.gym_env import GymEnv
from internutopia.core.observations import original
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.vec_env import Env
from internutopia.engines.base import DeviceWorld
from internutopia.recording.leaves import Gathered, gathered_leaves
from internutopia.rl.array_runner import ArrayRunner
from internutopia.rl.vector_env import VectorEnv

Api = Literal['list', 'array']


class StepSource(Protocol):
    """Envs of one runner, as the program that steps them sees them."""

    api: Api
    runner: SimulatorRunner
    config: Config
    step_dt: float  # [s]

    def begin_step(self) -> None:
        """Prepare for a step that is about to begin."""
        ...

    def observations(self, env_ids: Sequence[int]) -> Iterable[Gathered]:
        """Return the program's observations before the step that begins."""
        ...

    def actions(self, env_ids: Sequence[int]) -> list[Any] | NDArray[Any]:
        """Return the actions of this step, env by env: nested mappings, or an array `(m, k)`."""
        ...

    def rewards(self, env_ids: Sequence[int]) -> NDArray[np.float64]:
        """Return the rewards of the step that was made, `(m,)`."""
        ...


def source_of(env: Any) -> StepSource:
    """Return the step source of envs.

    Raises:
        TypeError: it is no env that can be recorded.
        NotImplementedError: the envs are on a device, or those of an `rl.VectorEnv` in other processes.
    """
    if isinstance(env, VectorEnv):
        if not isinstance(env.core, ArrayRunner):
            raise NotImplementedError(
                'recording needs the envs of a VectorEnv in this process, these are in workers: omit distribute()'
            )
        if isinstance(env.core.runner.world, DeviceWorld):
            raise NotImplementedError('recording needs arrays of numpy: the envs of this VectorEnv are on a device')
        return _ArraySource(env)
    if isinstance(env, Env | GymEnv):
        return ListSource(env.runner)
    raise TypeError(f'the recorder takes an Env, a gym_env.Env or an rl.VectorEnv, got {type(env).__name__}')


class ListSource(StepSource):
    """`vec_env.Env` and `gym_env.Env`, and the envs of a worker."""

    api: Api = 'list'

    def __init__(self, runner: SimulatorRunner):
        self.runner = runner
        self.config = runner.config
        self.step_dt = self.runner.world.step_dt

    @override
    def begin_step(self) -> None:
        pass

    @override
    def observations(self, env_ids: Sequence[int]) -> Iterable[Gathered]:
        observations, *_ = self.runner.last
        return gathered_leaves([original(observations[env_id]) for env_id in env_ids])

    @override
    def actions(self, env_ids: Sequence[int]) -> list[Any]:
        actions = self.runner.actions
        return [actions[env_id] for env_id in env_ids]

    @override
    def rewards(self, env_ids: Sequence[int]) -> NDArray[np.float64]:
        _, rewards, *_ = self.runner.last
        return np.array([rewards[env_id] or 0.0 for env_id in env_ids], np.float64)


class _ArraySource(StepSource):
    """`rl.VectorEnv`: the observation has one leaf, `state`."""

    api: Api = 'array'

    def __init__(self, env: VectorEnv):
        self._core = env.core
        self.runner = env.core.runner
        tasks = [task.model_copy(update={'learning': env.core.learning}) for task in env.core.config.task_configs]
        self.config = env.core.config.model_copy(update={'task_configs': tasks})
        self.step_dt = env.core.step_dt
        self._returns = np.zeros(self.runner.env_num)  # before the step

    @override
    def begin_step(self) -> None:
        self._returns[:] = self._core.returns

    @override
    def observations(self, env_ids: Sequence[int]) -> Iterable[Gathered]:
        return [Gathered('state', list(range(len(env_ids))), self._core.observer.policy.last[env_ids])]

    @override
    def actions(self, env_ids: Sequence[int]) -> NDArray[Any]:
        return self._core.state.actions[env_ids]

    @override
    def rewards(self, env_ids: Sequence[int]) -> NDArray[np.float64]:
        return self._core.returns[env_ids] - self._returns[env_ids]
