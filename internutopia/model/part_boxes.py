"""Part boxes: boxes around the geoms of a thing, each in the frame of the body that moves it, or around a robot.

They are exact for primitives and meshes; a plane that is infinite counts as its origin. Lengths in metres.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from mujoco import mjtGeom
from numpy.typing import NDArray

from internutopia.rendering.camera import NO_COLOUR
from internutopia.rendering.geom_groups import shown_geoms
from internutopia.util.rotations import quat_rotate

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PartBox:
    """Box around the geoms of a thing that move with one body.

    Attributes:
        body: its name, None for what stands still: then the frame is that of the env.
        movable: whether physics moves it.
        low: `(3,)` lowest corner of the box [m], along the axes of the frame.
        high: `(3,)` highest corner [m].
    """

    body: str | None
    movable: bool
    low: Array
    high: Array


def part_boxes(
    model: mujoco.MjModel, bodies: Mapping[int, str], things: Iterable[NDArray[np.intp]]
) -> list[tuple[PartBox, ...]]:
    """Return boxes around the geoms of each thing, body by body: static ones first, then along the tree.

    Args:
        model: of the scene.
        bodies: names of the bodies that have poses, by their number; what hangs on none of them stands still.
        things: geoms of each; those that images show count, or all if none of them is shown.
    """
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return [_boxes_of(model, data, bodies, geoms) for geoms in things]


def robot_box(
    model: mujoco.MjModel, links: Iterable[int], positions: NDArray[Any], orientations: NDArray[Any]
) -> tuple[Array, Array]:
    """Return the lowest and highest corner `(3,)` [m] of a box around a robot's visible geoms.

    Args:
        model: of its scene.
        links: the k bodies that it consists of.
        positions: of its links `(k, 3)` [m].
        orientations: of its links `(k, 4)`.
    """
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    corners: list[Array] = [positions]
    shown = shown_geoms(model)
    for body, position, orientation in zip(links, positions, orientations, strict=True):
        geoms = np.flatnonzero((model.geom_bodyid == body) & shown)
        boxes = [geom_bounds(model, data, geom, body) for geom in geoms.tolist()]
        for box in boxes:
            local = np.array(list(itertools.product(*zip(*box, strict=True))))
            corners.append(position + quat_rotate(np.tile(orientation, (8, 1)), local))
    points = np.concatenate(corners)
    return points.min(axis=0), points.max(axis=0)


def _boxes_of(
    model: mujoco.MjModel, data: mujoco.MjData, bodies: Mapping[int, str], geoms: NDArray[np.intp]
) -> tuple[PartBox, ...]:
    shown = geoms[shown_geoms(model)[geoms] & (_opacities(model, geoms) > 0)]
    by_body: dict[int, list[int]] = {}
    for geom in (shown if len(shown) else geoms).tolist():
        body = int(model.geom_bodyid[geom])
        while body and body not in bodies:  # up to the nearest one with a pose that it is joined to
            body = int(model.body_parentid[body])
        by_body.setdefault(body, []).append(geom)
    parts: list[PartBox] = []
    for body, own in sorted(by_body.items()):
        corners = np.array([geom_bounds(model, data, geom, body) for geom in own])
        movable = model.body_weldid[body] != 0 and model.body_mocapid[model.body_rootid[body]] < 0
        parts.append(PartBox(bodies.get(body), bool(movable), corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)))
    return tuple(parts)


def _opacities(model: mujoco.MjModel, geoms: NDArray[np.intp]) -> NDArray[np.float32]:
    """Return the opacity of geoms: their own, or that of their material where they have no colour."""
    rgba, materials = model.geom_rgba[geoms], model.geom_matid[geoms]
    own = (rgba != NO_COLOUR).any(axis=1) | (materials < 0)
    return np.where(own, rgba[:, 3], model.mat_rgba[materials, 3] if model.nmat else 1.0)


def geom_bounds(model: mujoco.MjModel, data: mujoco.MjData, geom: int, body: int) -> tuple[Array, Array]:
    """Return the lowest and highest corner of a geom in the frame of a body."""
    axes = data.xmat[body].reshape(3, 3)
    place = axes.T @ (data.geom_xpos[geom] - data.xpos[body])
    turn = axes.T @ data.geom_xmat[geom].reshape(3, 3)
    kind, size = mjtGeom(model.geom_type[geom]), model.geom_size[geom]
    if kind == mjtGeom.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first = model.mesh_vertadr[mesh]
        points = model.mesh_vert[first : first + model.mesh_vertnum[mesh]] @ turn.T + place
        return points.min(axis=0), points.max(axis=0)
    if kind == mjtGeom.mjGEOM_SPHERE:
        half = np.full(3, size[0])
    elif kind == mjtGeom.mjGEOM_CAPSULE:
        half = np.abs(turn[:, 2]) * size[1] + size[0]
    elif kind == mjtGeom.mjGEOM_CYLINDER:
        half = np.abs(turn[:, 2]) * size[1] + np.sqrt(np.maximum(1.0 - turn[:, 2] ** 2, 0.0)) * size[0]
    elif kind == mjtGeom.mjGEOM_ELLIPSOID:
        half = np.sqrt(turn**2 @ size**2)
    elif kind == mjtGeom.mjGEOM_PLANE:
        half = np.abs(turn) @ [size[0], size[1], 0.0]
    else:
        place = place + turn @ model.geom_aabb[geom, :3]
        half = np.abs(turn) @ model.geom_aabb[geom, 3:]
    return place - half, place + half
