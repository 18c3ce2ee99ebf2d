"""Interfaces of runners.

`EnvRunner` is the interface of runners for the list API: `LocalRunner` in this process, `RayRunner` on a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from numpy.typing import NDArray

from internutopia.config import TaskCfg
from internutopia.core.episodes import Episode
from internutopia.core.episodes.results import Results
from internutopia.core.observations import StepResult
from internutopia.core.runner.state import SceneState
from internutopia.util.conventions import StepColumns

Action = Mapping[str, Any] | None
Image = NDArray[np.uint8]
Question = Callable[[Any, int], Any]
"""Called in a worker with what steps the envs there (`SimulatorRunner`, `ArrayRunner`), and the id that its env 0 has
in the whole run; can be pickled."""


@dataclass
class Failures:
    """Envs whose episodes are cut because something went wrong in a step.

    Attributes:
        mask: which ones, bool `(n,)`; None if there are none.
        errors: error messages by env id; empty on a device.
    """

    mask: Any = None
    errors: dict[int, str] = field(default_factory=dict)


class StepWatcher(Protocol):
    """Callbacks in the steps of a `SimulatorRunner`, for a viewer or recorder; called in the thread that steps."""

    def on_step_start(self) -> None:
        """Called before a step; it begins when this returns."""
        ...

    def on_commanded(self) -> None:
        """Called when the robots were commanded, before physics is stepped."""
        ...

    def on_change(self) -> None:
        """Called after a step or a reset."""
        ...


@runtime_checkable
class WorkerEnvs(Protocol):
    """Envs in other processes, which can be queried between their steps.

    Attributes:
        env_num: number of envs; group `k` has those of `groups[k]`, which a worker of its own steps.
        step_dt: length of a step [s].
        watchers: step watchers; `on_step_start` and `on_change` are called in the thread that steps.
    """

    env_num: int
    groups: Sequence[range]
    step_dt: float
    watchers: list[StepWatcher]

    def ask(self, questions: Mapping[int, Question]) -> dict[int, Any]:
        """Call functions in workers, by group; all of them at the same time.

        Those that die meanwhile, or are in the middle of a step, do not answer; what a question raises is raised here.
        ConnectionError if the cluster is gone.
        """
        ...


class EpisodeView(Protocol):
    """An episode in an env, from its reset to the next one."""

    @property
    def episode(self) -> Episode:
        """The episode: its number and its task config."""
        ...

    @property
    def task_config(self) -> TaskCfg:
        """As configured, the copy that `reset` returned."""
        ...

    @property
    def ended(self) -> bool:
        """True if the episode has ended."""
        ...


class EnvRunner(Protocol):
    """Steps and resets envs; see `vec_env.Env` for what calls mean to a user.

    Envs have ids `0..env_num - 1`. They form groups that step on their own; `step` steps all groups together. A
    runner trusts env ids and numbers of actions: the list API checks them first. It checks what is in the actions.
    """

    env_num: int
    dt: float
    groups: Sequence[range]
    results: Results

    @property
    def envs(self) -> Sequence[EpisodeView | None]:
        """The episode in each env, None for an env without one."""
        ...

    @property
    def workers(self) -> WorkerEnvs | None:
        """The envs as those of other processes; None if they are in this one."""
        ...

    @property
    def running(self) -> bool:
        """True if an episode is running in any env."""
        ...

    def reset(self, env_ids: Sequence[int]) -> tuple[list[dict[str, Any] | None], list[TaskCfg | None]]:
        """Start the next episodes in these envs, in this order; None where the queue is exhausted.

        Whatever goes wrong puts the episodes back to the head of the queue.
        """
        ...

    def step(self, actions: Sequence[Action]) -> StepColumns:
        """Step every env. ValueError or KeyError for a bad action, before anything has moved."""
        ...

    def step_async(self, group: int, actions: Mapping[int, Action]) -> None:
        """Begin a step of one group's envs. ValueError or KeyError for a bad action, before anything has moved."""
        ...

    def poll(self) -> list[int]:
        """Wait until the step of a group is done; returns all groups whose step is. Some group must be at work."""
        ...

    def step_wait(self, group: int) -> list[StepResult]:
        """Return the results of the step of a group, env by env."""
        ...

    def get_obs(self) -> list[dict[str, Any] | None]:
        """Return the current observation of every env with an episode, the last one where the episode has ended."""
        ...

    def warm_up(self, steps: int, physics: bool) -> None:
        """Let time pass without commands."""
        ...

    def render(self, camera: str | tuple[Any, Any] | None, size: tuple[int, int]) -> Image:
        """Render all envs."""
        ...

    def get_state(self, env_ids: Sequence[int]) -> SceneState:
        """Return the state of envs. ValueError for one without an episode."""
        ...

    def set_state(self, state: SceneState, env_ids: Sequence[int] | None) -> None:
        """Put envs into a state. ValueError if it does not fit: nothing has changed."""
        ...

    def action_space(self, env_id: int, robot: str, controller: str) -> gymnasium.spaces.Space[Any] | None:
        """Return the action space of a controller in an env with an episode; None if it has none or does not exist."""
        ...

    def watch(self, begin: Callable[[Any], Callable[[], None]]) -> Callable[[], None]:
        """Attach a step watcher; returns a function that detaches it; see `vec_env.Env.watch`."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...
