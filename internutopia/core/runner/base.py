"""What the list front door asks of what runs its envs: `SimulatorRunner` in this process, `RayRunner` on a cluster.

Envs have ids `0..env_num - 1`. They stand in groups that step on their own; `step` steps all groups together. A runner
trusts env ids and numbers of actions: the front door checks them first. It checks what is in the actions.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from internutopia.core.config import TaskCfg
from internutopia.core.episodes import Episode
from internutopia.core.episodes.results import Results
from internutopia.core.runner.snapshot import SceneState

Action = Mapping[str, Any] | None
StepResult = tuple[dict[str, Any] | None, float | None, bool | None, bool | None, dict[str, Any] | None]
"""Observation, reward, terminated, truncated, info."""
EMPTY_RESULT: StepResult = (None, None, None, None, None)
Image = NDArray[np.uint8]


class EpisodeView(Protocol):
    """An episode in an env, from its reset to the next one."""

    @property
    def episode(self) -> Episode:
        """Which one."""
        ...

    @property
    def task_config(self) -> TaskCfg:
        """As configured, the copy that `reset` returned."""
        ...

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        ...


class EnvRunner(Protocol):
    """Steps and resets envs; see `vec_env.Env` for what calls mean to a user."""

    env_num: int
    dt: float
    groups: Sequence[range]
    results: Results

    @property
    def envs(self) -> Sequence[EpisodeView | None]:
        """What each env holds."""
        ...

    @property
    def running(self) -> bool:
        """Whether an episode goes on in any env."""
        ...

    def reset(self, env_ids: Sequence[int]) -> tuple[list[dict[str, Any] | None], list[TaskCfg | None]]:
        """Start the next episodes in these envs, in this order; None where the queue is exhausted.

        Whatever goes wrong puts the episodes back to the head of the queue.
        """
        ...

    def step(self, actions: Sequence[Action]) -> list[StepResult]:
        """One step of every env. ValueError or KeyError for a bad action, before anything has moved."""
        ...

    def step_async(self, group: int, actions: Mapping[int, Action]) -> None:
        """Begin a step of one group's envs. ValueError or KeyError for a bad action, before anything has moved."""
        ...

    def poll(self) -> list[int]:
        """Wait until the step of a group is done; returns all groups whose step is. Some group must be at work."""
        ...

    def step_wait(self, group: int) -> list[StepResult]:
        """What came of the step of a group, env by env."""
        ...

    def get_obs(self) -> list[dict[str, Any] | None]:
        """The current observation of every env that holds an episode, its last one where the episode has ended."""
        ...

    def warm_up(self, steps: int, physics: bool) -> None:
        """Let time pass without commands."""
        ...

    def render(self, camera: str | tuple[Any, Any] | None, size: tuple[int, int]) -> Image:
        """A picture of all envs."""
        ...

    def get_state(self, env_ids: Sequence[int]) -> SceneState:
        """The state of envs. ValueError for one without an episode."""
        ...

    def set_state(self, state: SceneState, env_ids: Sequence[int] | None) -> None:
        """Put envs into a state. ValueError if it does not fit: nothing has changed."""
        ...

    def action_space(self, env_id: int, robot: str, controller: str) -> gymnasium.spaces.Space[Any] | None:
        """The action space of a controller in an env that holds an episode; None if it says none, or is not there."""
        ...

    def close(self) -> None:
        """Free everything."""
        ...


def repeated(result: StepResult) -> StepResult:
    """The last result of an env that has ended, told again; shares nothing with it."""
    obs, _, terminated, truncated, info = copy.deepcopy(result)
    return obs, 0.0, terminated, truncated, info
