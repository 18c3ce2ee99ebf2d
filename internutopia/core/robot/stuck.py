"""Stuck robots: those that stand still although a controller tells them to move."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.rotations import wrap_angle, yaw_of

if TYPE_CHECKING:
    from internutopia.core.robot.controller import BaseController

DISTANCE = 0.2  # m: who has come so far does not stand still
ANGLE = math.radians(15)  # rad, the same of who has turned
_TOLD = np.array([1.0, math.radians(90)])  # m that a robot is told to go meanwhile, rad that it is told to turn
_LEAST_TIME = 1.0  # s: nobody goes as fast as somebody may say

Floats = NDArray[Any]


def has_moved(pose: Floats, anchor: Floats, distance: float = DISTANCE, angle: float = ANGLE) -> Any:
    """Return True where robots have moved: `pose` and `anchor` are x, y [m] and yaw [rad], `(..., 3)`."""
    way = pose - anchor
    return (np.hypot(way[..., 0], way[..., 1]) >= distance) | (np.abs(wrap_angle(way[..., 2])) >= angle)


class StuckDetector:
    """Says of a controller of speeds whether its robot is stuck: it has come nowhere on a way that it should have gone.

    On 1 m, or a turn by 90 degrees, of what it was told, it has moved by less than 20 cm and turned by less than 15
    degrees, for a second at least. It remembers what belongs to an episode in states of the controller.
    """

    def __init__(self, controller: BaseController):
        self._controller = controller
        self._anchor = controller.state((3,))  # x, y [m], yaw [rad] where it moved last
        self._told = controller.state((2,))  # [m], [rad] since then

    @property
    def memory(self) -> list[NDArray[Any]]:
        """Arrays of its state, `(*batch_shape, k)` each."""
        return [self._anchor, self._told]

    @property
    def stuck(self) -> Any:
        """Bool `(*batch_shape,)`, as of the last command."""
        return (self._told >= _TOLD).any(axis=-1)

    def update(self, speed: Any, turn: Any, env_ids: Any) -> None:
        """Robots are told to move at a speed [m/s] and to turn at a rate [rad/s] in the next step."""
        position, orientation = self._controller.robot.articulation.get_pose()
        position, orientation = position[env_ids], orientation[env_ids].astype(np.float64)
        pose = np.concatenate([position[..., :2], np.asarray(yaw_of(orientation))[..., None]], axis=-1)
        told = np.stack(np.broadcast_arrays(np.abs(speed), np.abs(turn)), axis=-1)
        afresh = has_moved(pose, self._anchor[env_ids]) | ~told.any(axis=-1)
        self._anchor[env_ids] = np.where(afresh[..., None], pose, self._anchor[env_ids])
        told = np.minimum(told, _TOLD / _LEAST_TIME) * self._controller.scene.world.step_dt
        self._told[env_ids] = np.where(afresh[..., None], 0.0, self._told[env_ids]) + told
