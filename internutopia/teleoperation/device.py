"""Device: input of a person, read once before each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Twist = NDArray[np.float64]
"""Velocity forward, to the left and up, and about these axes (roll, pitch, yaw), `(6,)`; each as a fraction of the
maximum, from -1 to 1."""


class Signal(Enum):
    """Signal of a person other than a motion."""

    GRIPPER = 'close or open the gripper'
    NEXT_PART = 'move another part: the base, an arm'
    SUCCESS = 'the episode is a success: go on with the next one'
    RESET = 'the episode is none: go on with the next one'
    DISCARD = 'the episode does not count: start it again'
    END = 'end the session'


@dataclass(frozen=True)
class DeviceInput:
    """Input of a device at an instant; `signals` are those since the last read, in order."""

    twist: Twist = field(default_factory=lambda: np.zeros(6))
    signals: tuple[Signal, ...] = ()

    @classmethod
    def sum(cls, inputs: Sequence[DeviceInput]) -> DeviceInput:
        """Combine the inputs of several devices."""
        twist = np.sum([each.twist for each in inputs], axis=0)
        return cls(np.clip(twist, -1.0, 1.0), tuple(signal for each in inputs for signal in each.signals))


class Device(Protocol):
    """Input device: a keyboard, a page in a browser, ..."""

    def read(self) -> DeviceInput:
        """Return the current input without waiting."""
        ...

    def close(self) -> None:
        """Release the device; idempotent."""
        ...
