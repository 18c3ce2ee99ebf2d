"""Device: what a person steers with, asked once before each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Twist = NDArray[np.float64]
"""How fast to move forward, to the left and up, and to turn about these axes (roll, pitch, yaw), `(6,)`; each as a part
of the fastest, from -1 to 1."""


class Signal(Enum):
    """What a person says beside how to move."""

    GRIPPER = 'close or open the gripper'
    NEXT_PART = 'move another part: the base, an arm'
    SUCCESS = 'the episode is a success: go on with the next one'
    RESET = 'the episode is none: go on with the next one'
    DISCARD = 'the episode does not count: start it again'
    END = 'end the session'


@dataclass(frozen=True)
class DeviceInput:
    """What a person wants at an instant; `signals` are those since the last one, in their order."""

    twist: Twist = field(default_factory=lambda: np.zeros(6))
    signals: tuple[Signal, ...] = ()

    @classmethod
    def sum(cls, inputs: Sequence[DeviceInput]) -> DeviceInput:
        """What a person wants who has several devices."""
        twist = np.sum([each.twist for each in inputs], axis=0)
        return cls(np.clip(twist, -1.0, 1.0), tuple(signal for each in inputs for signal in each.signals))


class Device(Protocol):
    """A keyboard, a page in a browser, ..."""

    def read(self) -> DeviceInput:
        """What the person wants now; does not wait."""
        ...

    def close(self) -> None:
        """Give the device back; twice is fine."""
        ...
