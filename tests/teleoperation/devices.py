"""Devices without a person."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from internutopia.teleoperation import DeviceInput, Signal


class ScriptedDevice:
    """Gives what a list says, one step after the other, then nothing."""

    def __init__(self, inputs: Sequence[DeviceInput]):
        self.inputs = list(inputs)

    def read(self) -> DeviceInput:
        return self.inputs.pop(0) if self.inputs else DeviceInput()

    def close(self) -> None:
        pass


def moving(*parts: float, steps: int = 1) -> list[DeviceInput]:
    """Forward, left and up for some steps."""
    return [DeviceInput(np.array([*parts, 0, 0, 0], float))] * steps


def saying(*signals: Signal) -> list[DeviceInput]:
    """Signals, each in a step of its own."""
    return [DeviceInput(signals=(signal,)) for signal in signals]
