"""Stuck robots: those that stand still under a moving command."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.rotations import wrap_angle, yaw_of

if TYPE_CHECKING:
    from internutopia.core.robot.controller import BaseController

DISTANCE = 0.2  # m: a robot that moved so far does not stand still
ANGLE = math.radians(15)  # rad, likewise for turning
_COMMANDED = np.array([1.0, math.radians(90)])  # m and rad that were commanded meanwhile
_LEAST_TIME = 1.0  # s: commanded speeds may be faster than any robot

Floats = NDArray[Any]


def has_moved(pose: Floats, anchor: Floats, distance: float = DISTANCE, angle: float = ANGLE) -> Any:
    """Return True where robots have moved: `pose` and `anchor` are x, y [m] and yaw [rad], `(..., 3)`."""
    way = pose - anchor
    return (np.hypot(way[..., 0], way[..., 1]) >= distance) | (np.abs(wrap_angle(way[..., 2])) >= angle)


class StuckDetector:
    """Detector of stuck robots for a controller of speeds: those that do not follow their commands.

    On 1 m, or a turn by 90 degrees, of its commands, a robot has moved by less than 20 cm and turned by less than 15
    degrees, for a second at least. The memory of an episode is kept in states of the controller.
    """

    def __init__(self, controller: BaseController):
        self._controller = controller
        self._anchor = controller.state((3,))  # x, y [m], yaw [rad] where it moved last
        self._commanded = controller.state((2,))  # [m], [rad] since then

    @property
    def memory(self) -> list[NDArray[Any]]:
        """Arrays of its state, `(*batch_shape, k)` each."""
        return [self._anchor, self._commanded]

    @property
    def stuck(self) -> Any:
        """Bool `(*batch_shape,)`, as of the last command."""
        return (self._commanded >= _COMMANDED).any(axis=-1)

    def update(self, speed: Any, turn: Any, env_ids: Any) -> None:
        """Record the commands of the next step: speeds [m/s] and turning rates [rad/s]."""
        position, orientation = self._controller.robot.articulation.get_pose()
        position, orientation = position[env_ids], orientation[env_ids].astype(np.float64)
        pose = np.concatenate([position[..., :2], np.asarray(yaw_of(orientation))[..., None]], axis=-1)
        commanded = np.stack(np.broadcast_arrays(np.abs(speed), np.abs(turn)), axis=-1)
        restart = has_moved(pose, self._anchor[env_ids]) | ~commanded.any(axis=-1)
        self._anchor[env_ids] = np.where(restart[..., None], pose, self._anchor[env_ids])
        commanded = np.minimum(commanded, _COMMANDED / _LEAST_TIME) * self._controller.scene.world.step_dt
        self._commanded[env_ids] = np.where(restart[..., None], 0.0, self._commanded[env_ids]) + commanded
