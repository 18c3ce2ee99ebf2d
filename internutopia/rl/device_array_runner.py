"""Device array runner: the envs of the array API where all arrays are tensors on the engine's device.

A step makes the host wait for nothing, as long as every episode is of the one task of an endless order: envs that end
are then started afresh by the device itself, from copies of how they started first. With several tasks, with orders
that come to an end and with tasks and robots that have code for it (`post_reset`, `is_done`), the host waits in every
step for which envs ended, to give them the next episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.config import Config
from internutopia.config.learning import LearningCfg
from internutopia.core.episodes import Episode
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.sensor.sensor import noise_key
from internutopia.core.task.task import BaseTask
from internutopia.engines.base import DeviceWorld
from internutopia.engines.env_selection import EnvSelection
from internutopia.engines.views import LARGEST_NUMBER
from internutopia.rl.array_runner import ArrayRunner, StepOutcome
from internutopia.util.arrays import AsyncReadback, signed, to_host

_FAILED = 'the simulation diverged, or an action was too large or not finite, or what a term gave was not finite'


class DeviceArrayRunner(ArrayRunner):
    """`ArrayRunner` on a `DeviceWorld`; all arrays are tensors.

    An action that is not finite, or larger than the engine takes, cuts the episode of its env.
    """

    device_arrays = True

    def __init__(self, config: Config, learning: LearningCfg | None = None):
        super().__init__(config, learning)
        world = self.runner.world
        assert isinstance(world, DeviceWorld)
        self._world = world
        self._one_task = len(config.task_configs) == 1 and config.episode_order != 'once'
        self._replays = False  # whether the device starts episodes by itself
        self._next_id = self.arrays.zeros((), 'int64')
        self._noise_seed = signed(noise_key(self.queue.seed, 0))  # with the number of an episode, the key of its noise
        self._writes = config.results_file is not None or config.metrics_save_path == 'console'
        self._echo = AsyncReadback()

    @override
    def seed(self, seed: int | Sequence[int]) -> None:
        super().seed(seed)
        self._next_id.zero_()
        self._noise_seed = signed(noise_key(self.queue.seed, 0))

    @override
    def reset(self, envs: EnvSelection) -> None:
        """Start the next episodes in these envs; the host waits unless the device can do it alone."""
        self._start(envs)
        self._world.device_noise_keys = self.episode_ids + self._noise_seed

    def _start(self, envs: EnvSelection) -> None:
        if not self._replays:
            super().reset(envs)
            self._replays = self._one_task and not to_host(self.episode_ids < 0).any() and not self._has_hooks()
            if self._replays:
                self._next_id += self.env_num
                self._vacant = None
            return
        mask = envs.index
        self._world.reset_to_start(mask)
        numbers = self._next_id + mask.cumsum(0) - 1
        envs.put(self.episode_ids, numbers)
        self._next_id += mask.sum()
        envs.put(self.running, True)
        assert self._batch is not None
        self._batch.reset(mask)
        self._begin(envs)
        envs.put(self.returns, 0.0)
        self.observer.on_reset(envs)

    @override
    def _invalid_actions(self, envs: EnvSelection) -> Any:
        actions: Any = self.state.actions
        invalid = ~(self.arrays.xp.abs(actions) <= LARGEST_NUMBER)
        actions.masked_fill_(invalid, 0.0)
        return envs.index & invalid.any(axis=-1)

    @override
    def close(self) -> None:
        """Free everything; results that are still on their way are written."""
        self._write_results(wait=True)
        super().close()

    def _has_hooks(self) -> bool:
        """Return True if starting or ending an episode needs code of the task or the robots in each env."""
        task = self.runner.slot(0).task
        hooks = [(type(task).post_reset, BaseTask.post_reset)]
        hooks += [(type(robot).post_reset, BaseRobot.post_reset) for robot in task.robots.values()]
        return bool(self._self_ending) or any(own is not base for own, base in hooks)

    @override
    def _record(self, outcome: StepOutcome) -> None:
        if not self._replays:
            super()._record(outcome)
        elif self._writes:
            ended = outcome.terminated | outcome.truncated
            ends = (outcome.terminated, outcome.truncated, outcome.failed)
            self._echo.send(ended, self.episode_ids, self.state.steps, *ends, self.returns, *outcome.metrics.values())
            self._write_results()

    def _write_results(self, wait: bool = False) -> None:
        """Write the results known so far of the episodes that ended."""
        names = ('return', *self.learning.metrics)
        for ended, episodes, steps, terminated, truncated, failed, *metrics in self._echo.receive(wait):
            for env_id in np.flatnonzero(ended).tolist():
                episode = self.queue.take()
                assert isinstance(episode, Episode)
                self.runner.record(
                    env_id,
                    Episode(int(episodes[env_id]), episode.task_index, episode.snapshot),
                    int(steps[env_id]),
                    bool(terminated[env_id]),
                    bool(truncated[env_id]),
                    {name: float(values[env_id]) for name, values in zip(names, metrics, strict=True)},
                    _FAILED if failed[env_id] else None,
                )
            if ended.any():
                self.runner.results.flush()
