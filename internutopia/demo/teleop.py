"""Teleoperation targets: goal positions of an end effector, moved by keys or by a captured hand."""

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
    """Point that six keys move.

    Args:
        start: initial position `(3,)` [m].
        low: lower bounds of the position `(3,)` [m].
        high: upper bounds of the position `(3,)` [m].
        speed: speed [m per call].
    """

    def __init__(self, start: Sequence[float], low: Sequence[float], high: Sequence[float], speed: float = 0.2 / 240):
        self._position = np.array(start, np.float64)
        self._low, self._high = np.array(low), np.array(high)
        self._speed = speed
        self._keyboard = KeyboardInteraction()

    def read(self) -> tuple[NDArray[np.float64], bool | None]:
        """Return the position `(3,)` [m] and None: keys do not control grasping."""
        keys = self._keyboard.get_input()
        self._position += self._speed * (keys[0::2] - keys[1::2])
        self._position = np.clip(self._position, self._low, self._high)
        return self._position.copy(), None

    def close(self) -> None:
        """Restore the terminal."""
        self._keyboard.close()


class MocapTarget:
    """Point that is moved by the right hand of a captured person who faces the camera.

    Args:
        url: address of the motion-capture server.
        start: position `(3,)` [m] while the hand is where it was first seen.
        scale: factors of the hand's motion: forward, to the left, up `(3,)`.
    """

    def __init__(self, url: str, start: Sequence[float], scale: Sequence[float]):
        self._mocap = MocapInteraction(url)
        self._mocap.server_start()
        self._position = np.array(start, np.float64)
        self._scale = np.array(scale)
        self._last: NDArray[np.float64] | None = None

    def read(self) -> tuple[NDArray[np.float64], bool | None]:
        """Return the position `(3,)` [m], and True if the hand grasps; None if no hand is seen."""
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
        """Stop the server."""
        self._mocap.server_stop()
