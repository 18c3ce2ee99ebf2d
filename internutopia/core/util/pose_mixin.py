"""Poses in the env frame and in the world frame, for everything that stands in an env."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.rotations import quat_conjugate, quat_multiply, quat_rotate, quat_rotate_inverse

Pose = tuple[NDArray[np.float32], NDArray[np.float32]]


class PoseMixin:
    """Mixin over `get_pose` and `set_pose` (env frame) that adds the world frame and the frame of the parent prim.

    `offset` is where the env frame stands in the world, a plain list of floats `[x, y, z]` [m] (for a handle that is
    batched over envs, an array `(n, 3)`); the axes of the two frames are parallel.
    """

    env_id: Any
    offset: Any

    def get_pose(self) -> Pose:
        """Return position `(3,)` [m] and orientation `(4,)` in the env frame."""
        raise NotImplementedError

    def set_pose(self, position: Any = None, orientation: Any = None) -> None:
        """Move to a pose in the env frame; None leaves position or orientation as it is."""
        raise NotImplementedError

    def get_world_pose(self) -> Pose:
        """Return position `(3,)` [m] and orientation `(4,)` in the world frame."""
        position, orientation = self.get_pose()
        return (position + np.asarray(self.offset)).astype(np.float32), orientation

    def set_world_pose(self, position: Any = None, orientation: Any = None) -> None:
        """Move to a pose in the world frame; None leaves position or orientation as it is."""
        if position is not None:
            position = _vector('position', position) - np.asarray(self.offset)
        self.set_pose(position, orientation)

    def get_local_pose(self) -> Pose:
        """Return the pose in the frame of the parent prim: the robot's root for a link, else the env."""
        position, orientation = self.get_pose()
        parent_position, parent_orientation = self._parent_pose()
        position = quat_rotate_inverse(parent_orientation, position - parent_position)
        return position, quat_multiply(quat_conjugate(parent_orientation), orientation)

    def set_local_pose(self, translation: Any = None, orientation: Any = None) -> None:
        """Move to a pose in the frame of the parent prim."""
        parent_position, parent_orientation = self._parent_pose()
        if translation is not None:
            translation = parent_position + quat_rotate(
                parent_orientation, _vector('translation', translation).astype(np.float32)
            )
        if orientation is not None:
            orientation = quat_multiply(parent_orientation, np.asarray(orientation, np.float32))
        self.set_pose(translation, orientation)

    def get_env_id(self) -> str:
        """Return the env id, as text."""
        return str(self.env_id)

    def get_offset(self) -> Any:
        """Return the origin of the env frame in the world, `[x, y, z]` [m]."""
        return self.offset

    def unwrap(self) -> Any:
        """Return the engine's own object behind this handle."""
        return self

    def _parent_pose(self) -> Pose:
        return np.zeros(3, np.float32), np.array([1, 0, 0, 0], np.float32)


def _vector(name: str, values: Any) -> NDArray[np.float64]:
    """Return vectors `(..., 3)`. ValueError for another shape."""
    array = np.asarray(values, np.float64)
    if array.shape[-1:] != (3,):
        raise ValueError(f'{name}: expected 3 numbers, got {values!r}')
    return array
