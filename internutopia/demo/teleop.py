"""Teleoperation targets: where a person wants an end effector to be, told by keys or by a captured hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia_extension.interactions.keyboard import KeyboardInteraction
from internutopia_extension.interactions.motion_capture import MocapInteraction

_THUMB, _FINGER = 4, 8  # tips of thumb and index finger among the points of a captured hand
_PINCH = 0.03  # [m] between them when the hand grasps


class KeyboardTarget:
    """A point that six keys move.

    Args:
        start: where it is at first `(3,)` [m].
        low: where it can be at least `(3,)` [m].
        high: where it can be at most `(3,)` [m].
        speed: how fast it moves [m per call].
    """

    def __init__(self, start: Sequence[float], low: Sequence[float], high: Sequence[float], speed: float = 0.2 / 240):
        self._position = np.array(start, np.float64)
        self._low, self._high = np.array(low), np.array(high)
        self._speed = speed
        self._keyboard = KeyboardInteraction()

    def read(self) -> tuple[NDArray[np.float64], bool | None]:
        """Where it is now `(3,)` [m]; keys say nothing about grasping."""
        keys = self._keyboard.get_input()
        self._position += self._speed * (keys[0::2] - keys[1::2])
        self._position = np.clip(self._position, self._low, self._high)
        return self._position.copy(), None

    def close(self) -> None:
        """Give the terminal back."""
        self._keyboard.close()


class MocapTarget:
    """A point that the right hand of a captured person moves, who faces the camera.

    Args:
        url: address of the motion-capture server.
        start: where it is while the hand is where it was seen first `(3,)` [m].
        scale: by what the way of the hand is multiplied: forward, to the left, up `(3,)`.
    """

    def __init__(self, url: str, start: Sequence[float], scale: Sequence[float]):
        self._mocap = MocapInteraction(url)
        self._mocap.server_start()
        self._position = np.array(start, np.float64)
        self._scale = np.array(scale)
        self._last: NDArray[np.float64] | None = None

    def read(self) -> tuple[NDArray[np.float64], bool | None]:
        """Where it is now `(3,)` [m], and whether the hand grasps; None if no hand is seen."""
        seen: dict[str, Any] = self._mocap.step()
        points = np.array(seen.get('rh_bones_kps_cam') or seen.get('rh_bones_kps') or np.zeros((0, 3)), np.float64)
        if len(points) <= _FINGER:
            self._last = None
            return self._position.copy(), None
        wrist = points[0]
        if self._last is not None:
            right, down, away = wrist - self._last  # axes of the camera; the person's left is on its right
            self._position += self._scale * (-away, right, -down)
        self._last = wrist
        return self._position.copy(), bool(np.linalg.norm(points[_THUMB] - points[_FINGER]) < _PINCH)

    def close(self) -> None:
        """Have the server end."""
        self._mocap.server_stop()
