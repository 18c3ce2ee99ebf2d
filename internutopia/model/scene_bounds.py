"""Bounds of a compiled scene: its extent, and what is below its robots when an episode starts.

Extents are those of boxes around geoms, along the axes of the env; what collides below a robot is found by rays.
Lengths in metres, positions in the env frame.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from mujoco import mjtGeom, mjtJoint
from numpy.typing import NDArray

from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import SceneSpec

Array = NDArray[np.float64]

_SKY = re.compile(r'(^|[/_])sky[_-]?(dome|box|sphere)?\d*$', re.IGNORECASE)  # names of geometry that stands for a sky
_LEVEL = 0.1  # upward component of the normal from which on a plane is a ground
_DOWN = np.array([0.0, 0.0, -1.0])
_SHOWN = mujoco.MjvOption().geomgroup.astype(bool)  # geom groups that images show
_BACKDROP = 100.0  # m, size from which on a geom is one, such as a dome or a terrain far around
_FLAT = 0.05  # height of a ground, relative to its width
_FARTHEST = 10.0  # m, of what is shown from the middle of the robots
_TRAVEL = 0.5  # m, of a slide that is more than a part of an arm or a hand
_SWING = 0.25  # room around a robot that stays where it is, relative to its size


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


def box_at_start(scene: CompiledScene, spec: SceneSpec, cell: float, alone: bool) -> tuple[Array, Array] | None:
    """Return the lowest and highest corner `(3,)` of a box around what is seen of a scene when an episode starts.

    Planes, skies, a flat ground below other things, and a backdrop behind others do not count.

    Args:
        scene: the scene.
        spec: its spec, with the poses of robots and objects at the start.
        cell: width of the square around a robot that moves about.
        alone: False for an env among others: the box then stays within its cell. Else it is at most 20 m wide if there
            are robots.

    Returns:
        The box; None if there is nothing.
    """
    model, data = scene.model, scene.data_at_start(spec)
    low, high = geom_boxes(model, data)
    seen = _SHOWN[model.geom_group] & (model.geom_type != mjtGeom.mjGEOM_PLANE)
    seen &= ~np.array([is_sky(model.geom(i).name) for i in range(model.ngeom)], bool)
    large = (high - low).max(axis=1) > _BACKDROP
    if (seen & ~large).any():
        seen &= ~large
    boxes: list[tuple[Array, Array]] = []
    for robot in scene.robots.values():
        own = seen & (model.body_rootid[model.geom_bodyid] == model.body_rootid[robot.root.body])
        seen &= ~own
        place = data.xpos[robot.root.body]
        bottom, top = np.vstack([low[own], place]).min(axis=0), np.vstack([high[own], place]).max(axis=0)
        slides = robot.joint_ids[model.jnt_type[robot.joint_ids] == mjtJoint.mjJNT_SLIDE]
        far = (np.ptp(model.jnt_range[slides], axis=1) > _TRAVEL) | (model.jnt_limited[slides] == 0)
        room = 0.5 * cell if robot.root.qpos >= 0 or far.any() else _SWING * float(np.linalg.norm(top - bottom))
        boxes.append((bottom - [room, room, 0.0], top + [room, room, 0.0]))
    if seen.any():
        low, high = low[seen], high[seen]
        flat = high[:, 2] - low[:, 2] < _FLAT * (high - low)[:, :2].max(axis=1)
        tall = np.ones(len(low), bool) if flat.all() else ~flat
        low, high = low[tall].min(axis=0), high[tall].max(axis=0)
        if boxes:
            middle = np.mean([0.5 * (bottom + top) for bottom, top in boxes], axis=0)
            low, high = (np.clip(corner, middle - _FARTHEST, middle + _FARTHEST) for corner in (low, high))
        boxes.append((low, high))
    if not boxes:
        return None
    corners = np.array(boxes)
    if not alone:
        corners[..., :2] = np.clip(corners[..., :2], -0.5 * cell, 0.5 * cell)
    return corners[:, 0].min(axis=0), corners[:, 1].max(axis=0)


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
