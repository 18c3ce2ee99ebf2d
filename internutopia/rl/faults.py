"""Faults of terms, numbers that are not finite: named with their env and step, at once or a step later on a device."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from internutopia.rl.state import RobotState
from internutopia.util.arrays import AsyncReadback
from internutopia.util.errors import EnvValueError
from internutopia.util.log import warn

Bools = NDArray[np.bool_]


class DeviceFaults(NamedTuple):
    """Faults in terms of one kind on a device, as tensors of bools that are read back later.

    Attributes:
        envs: the envs at fault `(n,)`.
        parts: what is at fault in any of them `(k,)`.
        name: names the first of the parts.
    """

    envs: Any
    parts: Any
    name: Callable[[Bools], str]


class Faults:
    """Handling of numbers that are not finite, see `LearningCfg.on_nan`.

    Args:
        on_nan: the setting of that name.
        state: of the envs.
        episode_ids: the episode that each runs `(n,)`.
    """

    def __init__(self, on_nan: Literal['error', 'cut'], state: RobotState, episode_ids: Any):
        self._cuts = on_nan == 'cut'
        self._state = state
        self._episode_ids = episode_ids
        self._echo = AsyncReadback()
        self._sent: deque[Sequence[DeviceFaults]] = deque()  # and not received yet
        self._warned: set[str] = set()

    def named(self, envs: Bools, name: Callable[[int], str]) -> dict[int, str]:
        """Return the faults in these envs `(n,)`, by env id; `name` names one. EnvValueError unless they are cut."""
        faults: dict[int, str] = {}
        for env_id in np.flatnonzero(envs).tolist():
            step, episode = int(self._state.steps[env_id]), int(self._episode_ids[env_id])
            fault = name(env_id)
            self._report(env_id, f'step {step} of episode {episode}', fault)
            faults[env_id] = f'{fault} in step {step}'
        return faults

    def send(self, found: Sequence[DeviceFaults]) -> None:
        """Report the faults that a device finds in a step as soon as they are read back."""
        if not found:
            return
        self._sent.append(found)
        self._echo.send(self._state.xp.concat([bools for each in found for bools in (each.envs, each.parts)]))
        for bools in self._echo.receive():
            rest, n = bools[0], self._state.env_num
            for each in self._sent.popleft():
                envs, parts, rest = np.split(rest, [n, n + len(each.parts)])
                if envs.any() and parts.any():
                    self._report(int(envs.argmax()), 'a step or two ago', each.name(parts))

    def _report(self, env_id: int, step: str, fault: str) -> None:
        """Raise EnvValueError that names the faults, or warn, once for each term."""
        if not self._cuts:
            raise EnvValueError(
                env_id,
                f"env {env_id}, {step}: {fault}; with LearningCfg(on_nan='cut') the episode ends there and the other "
                'envs go on',
            )
        if fault not in self._warned:
            self._warned.add(fault)
            warn('%s, first in env %d, %s: episodes end where it does, and info marks them', fault, env_id, step)
