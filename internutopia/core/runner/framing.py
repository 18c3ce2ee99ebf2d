"""Framing: boxes around what envs hold when their episodes start, and default cameras that show such boxes.

A box is that of the start of an episode, so that the camera stays while things move.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.env_group import EnvSlot
from internutopia.core.scene.scene import IScene
from internutopia.engines.base import World
from internutopia.model.compiled import CompiledScene
from internutopia.model.meshes.hulls import box_corners
from internutopia.model.scene_bounds import box_at_start
from internutopia.rendering.camera import CameraPose, Intrinsics, half_angle
from internutopia.util.rotations import quat_to_matrix

Floats = NDArray[np.float64]
Box = tuple[Floats, Floats]
"""Lowest and highest corner `(3,)` [m]."""
Camera = str | tuple[Any, Any] | None

FREE_FOVY = 45.0  # degrees, of a camera that a caller places
AZIMUTHS = tuple(math.radians(angle) for angle in (-55.0, 55.0, -90.0, 90.0, -125.0, 125.0))
"""Directions in which a camera stands beside a robot, from where that is headed [rad]: the first with a free view."""
_FOVY = 40.0  # degrees
_ELEVATION = math.radians(35.0)  # of the camera above what it looks at
_AZIMUTH = math.radians(-125.0)  # where it stands, seen from what it looks at
_ROOM = 1.08  # around what is shown, as a multiple of its size
_HEIGHT = 1.0  # m, of an env that holds nothing


class Framing:
    """Boxes around the episodes of a runner.

    Args:
        world: the world.
        cell: distance between neighbouring envs on the grid [m].
    """

    def __init__(self, world: World, cell: float):
        self._world, self._cell = world, cell
        self._known: WeakKeyDictionary[EnvSlot, Box] = WeakKeyDictionary()

    def box_of(self, slot: EnvSlot) -> Box:
        """Return the box around an episode, env frame."""
        if slot not in self._known:
            handle, box = slot.prepared.handle, None
            if isinstance(handle, CompiledScene):
                box = box_at_start(handle, slot.prepared.model, self._cell, alone=self._world.env_num == 1)
            half = 0.5 * np.array([self._cell, self._cell, 0.0])
            self._known[slot] = box or (-half, half + [0.0, 0.0, _HEIGHT])
        return self._known[slot]

    def box_around(self, slots: Mapping[int, EnvSlot]) -> Box | None:
        """Return the box around the episodes of envs in their places, world frame; None if there are none."""
        by_model: dict[int, Box] = {}  # envs of one task share them
        boxes: list[Floats] = []
        for env_id, slot in slots.items():
            model = id(slot.prepared.model)
            if model in by_model:
                self._known[slot] = by_model[model]
            by_model[model] = self.box_of(slot)
            boxes.append(np.array(by_model[model]) + self._world.env_origins[env_id])
        return union(boxes)


def union(boxes: list[Any]) -> Box | None:
    """Return the box around boxes `(2, 3)`; None if there are none."""
    if not boxes:
        return None
    corners = np.array(boxes)
    return corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)


def overview_pose(box: Box, size: tuple[int, int]) -> CameraPose:
    """Return a camera pose that shows a whole box in a picture of `size` [pixels], from above a corner."""
    towards = np.array([math.cos(_AZIMUTH), math.sin(_AZIMUTH), math.tan(_ELEVATION)])
    pose = CameraPose.framing(box_corners(*box), towards, Intrinsics.of_height(half_angle(_FOVY), size), _ROOM)
    return replace(pose, cutaway=True)


def top_pose(box: Box, size: tuple[int, int]) -> CameraPose:
    """Return a camera pose above a box, looking straight down on all of it."""
    lens = Intrinsics.of_height(half_angle(_FOVY), size)
    pose = CameraPose.framing(box_corners(*box), np.array([0.0, 0.0, 1.0]), lens, _ROOM)
    return replace(pose, cutaway=True)


def camera_pose(camera: Camera, world: World, size: tuple[int, int], box: Box | None) -> CameraPose:
    """Return the camera of a call of `vec_env.Env.render`, world frame; those that show all envs show `box`.

    KeyError, ValueError: there is no such camera.
    """
    if camera is None or camera == 'top':
        box = box or (world.env_origins.min(axis=0) - 1.0, world.env_origins.max(axis=0) + 1.0)
        return (overview_pose if camera is None else top_pose)(box, size)
    if isinstance(camera, str):
        scene = IScene.at(camera)
        view = scene.camera_at(camera)
        position, orientation = (values[scene.env_id] for values in view.get_poses())
        pose = CameraPose(position.astype(float), quat_to_matrix(orientation), view.intrinsics(scene.env_id, size))
        return pose.moved(world.env_origins[scene.env_id])
    if np.shape(camera) != (2, 3):
        raise ValueError(f"camera {camera!r}: expected None, 'top', a prim path or two points (position, target)")
    position, target = camera
    if np.array_equal(position, target):
        raise ValueError(f'camera {camera!r}: position and target are the same point')
    return CameraPose.looking_at(target, position, Intrinsics.of_height(half_angle(FREE_FOVY), size))
