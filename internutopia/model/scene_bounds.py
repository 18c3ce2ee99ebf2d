"""Bounds of a scene, and boxes around its parts.

Extents are those of boxes around geoms, along the axes of the env; what collides below a robot is found by rays.
Lengths in metres, positions in the env frame.

Boxes around parts are exact for primitives and meshes; a plane that is infinite counts as its origin.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from mujoco import mjtGeom
from numpy.typing import NDArray

from internutopia.model.compiled import CompiledScene
from internutopia.util.rotations import quat_rotate

_SHOWN = mujoco.MjvOption().geomgroup.astype(bool)  # geom groups that pictures show


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
        things: geoms of each; those that pictures show count, or all if none of them is shown.
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
    for body, position, orientation in zip(links, positions, orientations, strict=True):
        geoms = np.flatnonzero((model.geom_bodyid == body) & _SHOWN[model.geom_group])
        boxes = [geom_bounds(model, data, geom, body) for geom in geoms.tolist()]
        for box in boxes:
            local = np.array(list(itertools.product(*zip(*box, strict=True))))
            corners.append(position + quat_rotate(np.tile(orientation, (8, 1)), local))
    points = np.concatenate(corners)
    return points.min(axis=0), points.max(axis=0)


def _boxes_of(
    model: mujoco.MjModel, data: mujoco.MjData, bodies: Mapping[int, str], geoms: NDArray[np.intp]
) -> tuple[PartBox, ...]:
    shown = geoms[_SHOWN[model.geom_group[geoms]]]
    by_body: dict[int, list[int]] = {}
    for geom in (shown if len(shown) else geoms).tolist():
        by_body.setdefault(_carrier(model, bodies, int(model.geom_bodyid[geom])), []).append(geom)
    parts: list[PartBox] = []
    for body, own in sorted(by_body.items()):
        corners = np.array([geom_bounds(model, data, geom, body) for geom in own])
        movable = model.body_weldid[body] != 0 and model.body_mocapid[model.body_rootid[body]] < 0
        parts.append(PartBox(bodies.get(body), bool(movable), corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)))
    return tuple(parts)


def _carrier(model: mujoco.MjModel, bodies: Mapping[int, str], body: int) -> int:
    """Return the nearest body with a pose that a body is or is joined to; 0 if there is none."""
    while body and body not in bodies:
        body = int(model.body_parentid[body])
    return body


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


Array = NDArray[np.float64]

_SKY = re.compile(r'(^|[/_])sky[_-]?(dome|box|sphere)?\d*$', re.IGNORECASE)  # names of geometry that stands for a sky
_LEVEL = 0.1  # upward component of the normal from which on a plane is a ground
_DOWN = np.array([0.0, 0.0, -1.0])


@dataclass(frozen=True)
class Nearest:
    """The geom nearest to a robot that has nothing below: its name, and how far away it is [m]."""

    geom: str
    distance: float


def is_sky(name: str) -> bool:
    """Return True if a geom or prim of that name is a sky, which is only seen."""
    return _SKY.search(name) is not None


def geom_boxes(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[Array, Array]:
    """Return the lowest and highest corners `(ngeom, 3)` of boxes around all geoms; those of planes are arbitrary."""
    centre, half = model.geom_aabb[:, :3], model.geom_aabb[:, 3:]
    axes = data.geom_xmat.reshape(-1, 3, 3)
    middle = data.geom_xpos + np.einsum('gij,gj->gi', axes, centre)
    reach = np.einsum('gij,gj->gi', np.abs(axes), half)
    return middle - reach, middle + reach


class SceneBounds:
    """Bounds of one compiled scene.

    Attributes:
        box: lowest and highest corner, `(3,)` each, of the box around the scene asset, robots and objects apart; None
            if nothing in it is finite.
        extent: `(3,)` its size.
        solid_extent: that of what collides, the same as `extent` if nothing does.
        has_ground: whether the scene has a plane that robots stand on wherever they are.
    """

    def __init__(self, scene: CompiledScene):
        self._model = model = scene.model
        self._robots = scene.robots
        self._planes = model.geom_type == mjtGeom.mjGEOM_PLANE
        self._solid = (model.geom_contype | model.geom_conaffinity) > 0
        self._geoms: dict[str, tuple[NDArray[np.intp], NDArray[np.intp]]] = {}
        data = mujoco.MjData(model)  # not kept: it takes more memory than the model
        mujoco.mj_kinematics(model, data)
        part = self._of_asset() & ~self._planes
        self.box = self._box_around(data, part)
        self.extent = _size(self.box)
        self.solid_extent = _size(self._box_around(data, part & self._solid) or self.box)
        normals = data.geom_xmat.reshape(-1, 3, 3)[:, 2, 2]
        self.has_ground = bool((self._planes & self._solid & (normals > _LEVEL)).any())

    def nothing_below(self, robot: str, state: Mapping[str, Array]) -> Nearest | None:
        """Return the nearest geom that collides if there is none below a robot; None if there is one below.

        Below is what a ray meets that goes down through the root or a corner of the robot's outline.

        Args:
            robot: Name of the robot.
            state: Of the whole scene, as `CompiledScene.initial_state` gives it.
        """
        if self.has_ground:
            return None
        data = mujoco.MjData(self._model)
        for name in ('qpos', 'mocap_pos', 'mocap_quat'):
            getattr(data, name)[:] = state[name]
        mujoco.mj_kinematics(self._model, data)
        own, others = self._geoms_of(robot)
        places, reach = data.geom_xpos, self._model.geom_rbound
        root = data.xpos[self._robots[robot].root.body]
        mine = np.concatenate([places[own], root[None]])
        top = float((mine[:, 2] + np.append(reach[own], 0.0)).max())
        corners = [(x, y) for x in (mine[:, 0].min(), mine[:, 0].max()) for y in (mine[:, 1].min(), mine[:, 1].max())]
        for x, y in (root[:2], *corners):
            start = np.array([x, y, top])
            near = others[np.hypot(places[others, 0] - x, places[others, 1] - y) <= reach[others]]
            if any(self._meets(data, geom, start) for geom in near.tolist()):
                return None
        return self._nearest(data, root, others)

    def _nearest(self, data: mujoco.MjData, place: Array, geoms: NDArray[np.intp]) -> Nearest:
        if not len(geoms):
            return Nearest('', np.inf)
        low, high = geom_boxes(self._model, data)
        gaps = np.maximum(np.maximum(low[geoms] - place, place - high[geoms]), 0.0)
        distances = np.linalg.norm(gaps, axis=1)
        nearest = int(geoms[distances.argmin()])
        name = self._model.geom(nearest).name or self._model.body(int(self._model.geom_bodyid[nearest])).name
        return Nearest(name, float(distances.min()))

    def _of_asset(self) -> NDArray[np.bool_]:
        """Return a mask `(ngeom,)` of the geoms of the scene asset, skies apart."""
        model = self._model
        roots = [model.body(int(model.body_rootid[body])).name for body in model.geom_bodyid]
        names = [model.geom(i).name for i in range(model.ngeom)]
        foreign = ('robots/', 'objects/')
        return np.array(
            [
                not (root.startswith(foreign) or name.startswith(foreign) or is_sky(name))
                for root, name in zip(roots, names, strict=True)
            ],
            bool,
        )

    def _geoms_of(self, robot: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return ids of the geoms of a robot, and of all others that collide, planes apart."""
        if robot not in self._geoms:
            own = np.isin(self._model.geom_bodyid, [link.body for link in self._robots[robot].bodies.values()])
            self._geoms[robot] = np.flatnonzero(own), np.flatnonzero(self._solid & ~own & ~self._planes)
        return self._geoms[robot]

    def _box_around(self, data: mujoco.MjData, chosen: NDArray[np.bool_]) -> tuple[Array, Array] | None:
        low, high = geom_boxes(self._model, data)
        return (low[chosen].min(axis=0), high[chosen].max(axis=0)) if chosen.any() else None

    def _meets(self, data: mujoco.MjData, geom: int, start: Array) -> bool:
        """Return True if a ray down from anywhere meets a geom, or its type is one that rays do not support."""
        model = self._model
        kind = int(model.geom_type[geom])
        if kind == mjtGeom.mjGEOM_MESH:
            return mujoco.mj_rayMesh(model, data, geom, start, _DOWN) >= 0
        if kind == mjtGeom.mjGEOM_HFIELD:
            return mujoco.mj_rayHfield(model, data, geom, start, _DOWN) >= 0
        if kind > int(mjtGeom.mjGEOM_BOX):
            return True
        place, size = (data.geom_xpos[geom], data.geom_xmat[geom]), model.geom_size[geom]
        return mujoco.mju_rayGeom(*place, size, start, _DOWN, kind) >= 0


def _size(box: tuple[Array, Array] | None) -> Array | None:
    return None if box is None else box[1] - box[0]
