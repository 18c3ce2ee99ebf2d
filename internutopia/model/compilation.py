"""Compilation of a composed spec, with a search tree for geoms that are fixed to the world.

MuJoCo searches what a robot touches in a tree of boxes for each body, which it builds by halves of equal number. In a
home, floors and ceilings then share boxes that are as large as the room, and a robot in it meets most of them. A tree
whose boxes are small (J. Goldsmith and J. Salmon, "Automatic creation of object hierarchies for ray tracing", 1987)
takes less than half the time in each step, and in a single flat two thirds. What collides is the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.config.simulator import ContactCfg
from internutopia.model.asset_files import BROKEN
from internutopia.model.asset_paths import resolve
from internutopia.model.compiled import CompiledScene
from internutopia.model.compose import compose
from internutopia.model.importers.load import is_mjcf
from internutopia.model.layouts import add_cameras
from internutopia.model.lighting import DEFAULT_PREFIX, drop_useless_shadows
from internutopia.model.probes import add_probes
from internutopia.model.scene_joints import add_joints, fix_bases
from internutopia.model.spec import SCENE_PREFIX, SceneSpec
from internutopia.util.rotations import quat_to_matrix

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

MANY_GEOMS = 50
"""Least number of colliding geoms for which the tree of the world is built again."""

_PROBE = 0.3  # [m]: a robot's link is about as large, so boxes are met as if they were larger by that
# Neither half of a box has less than a 16th of its geoms, or further down than 10 boxes a quarter of them: so the tree
# of 100,000 geoms is at most 50 boxes deep, which is how deep MuJoCo follows rays.
_LEAST_SHARES = (16, 4)
_UPPER_DEPTH = 10
_FEW = 8  # geoms that are just halved


def rebuild_static_tree(model: mujoco.MjModel) -> None:
    """Replace the tree of the world of a compiled model, if it has many geoms that collide."""
    begin, count = int(model.body_bvhadr[0]), int(model.body_bvhnum[0])
    if count < 2 * MANY_GEOMS:
        return
    rows = slice(begin, begin + count)
    geoms, boxes = model.bvh_nodeid[rows], model.bvh_aabb[rows]
    leaves = np.flatnonzero(geoms >= 0)
    low, high = _bounds(model, geoms[leaves])
    tree = _Tree(low, high)
    tree.add(np.arange(len(leaves)), 0)
    leaf = np.array(tree.leaves)
    is_leaf = leaf >= 0
    corners = np.array(tree.boxes)
    around = np.concatenate([corners.mean(axis=1), np.ptp(corners, axis=1) / 2], axis=1)
    around[is_leaf] = boxes[leaves[leaf[is_leaf]]]  # MuJoCo's own
    model.bvh_nodeid[rows] = np.where(is_leaf, geoms[leaves[leaf]], -1)
    model.bvh_child[rows] = tree.children
    model.bvh_depth[rows] = tree.depths
    model.bvh_aabb[rows] = around


class _Tree:
    """Boxes, parents first: corners `(2, 3)` [m], children, depths, and the leaf of each one, -1 for none."""

    def __init__(self, low: Floats, high: Floats):
        self._low, self._high = low, high
        self.boxes: list[tuple[Floats, Floats]] = []
        self.children: list[tuple[int, int]] = []
        self.depths: list[int] = []
        self.leaves: list[int] = []

    def add(self, inside: Ints, depth: int) -> int:
        """Add the box around some geoms, and all boxes in it; returns its number."""
        number = len(self.boxes)
        self.boxes.append((self._low[inside].min(axis=0), self._high[inside].max(axis=0)))
        self.children.append((-1, -1))
        self.depths.append(depth)
        self.leaves.append(int(inside[0]) if len(inside) == 1 else -1)
        if len(inside) > 1:
            first, second = self._halves(inside, _LEAST_SHARES[depth >= _UPPER_DEPTH])
            self.children[number] = self.add(first, depth + 1), self.add(second, depth + 1)
        return number

    def _halves(self, inside: Ints, share: int) -> tuple[Ints, Ints]:
        """Split geoms in two: at the least sum of the surfaces of both boxes, each times its number of geoms.

        `share`: neither has less than this part of them.
        """
        centres = self._low[inside] + self._high[inside]
        if len(inside) <= _FEW:
            ordered = inside[np.argsort(centres[:, np.ptp(centres, axis=0).argmax()], kind='stable')]
            return ordered[: len(ordered) // 2], ordered[len(ordered) // 2 :]
        least = max(len(inside) // share, 1)
        counts = np.arange(least, len(inside) - least)
        counts = counts[np.argsort(np.abs(2 * counts - len(inside)), kind='stable')]  # of equal ones the middle is best
        best, halves = np.inf, (inside, inside)
        for axis in range(3):
            ordered = inside[np.argsort(centres[:, axis], kind='stable')]
            back = ordered[::-1]
            below = _surfaces(self._low[ordered], self._high[ordered])[counts - 1]
            above = _surfaces(self._low[back], self._high[back])[len(inside) - counts - 1]
            costs = below * counts + above * (len(inside) - counts)
            if costs.min() < best:
                best, split = costs.min(), counts[costs.argmin()]
                halves = ordered[:split], ordered[split:]
        return halves


def _surfaces(low: Floats, high: Floats) -> Floats:
    """Return half the surface `(n,)` [m2] of the box around the first, the first two, ... of some boxes."""
    x, y, z = (np.maximum.accumulate(high) - np.minimum.accumulate(low) + _PROBE).T
    return x * y + y * z + z * x


def _bounds(model: mujoco.MjModel, geoms: NDArray[np.int32]) -> tuple[Floats, Floats]:
    """Return corners `(n, 3)` [m] of boxes along the axes of the world around geoms of it."""
    rotations = quat_to_matrix(model.geom_quat[geoms])
    centre, half = model.geom_aabb[geoms, :3], model.geom_aabb[geoms, 3:]
    centre = model.geom_pos[geoms] + np.einsum('nij,nj->ni', rotations, centre)
    half = np.einsum('nij,nj->ni', np.abs(rotations), half)
    return centre - half, centre + half


def compile_scene(
    scene: SceneSpec,
    timestep: float,
    contact: ContactCfg | None = None,
    edit: Callable[[mujoco.MjSpec], None] = lambda spec: None,
) -> CompiledScene:
    """Compose a scene, with its joints, probes and cameras, `edit` it, and compile it. Errors as for `compose`."""
    spec = _composed(scene, timestep, contact)
    add_probes(spec, scene.robots)
    add_cameras(spec, scene.robots)
    edit(spec)
    try:
        model = spec.compile()
    except BROKEN as error:
        assets = [scene.asset, *(r.asset for r in scene.robots), *(o.asset for o in scene.objects)]
        raise ValueError(
            f'cannot compile the scene made of {", ".join(str(a) for a in assets if a)}: {error}'
        ) from error
    rebuild_static_tree(model)
    own = () if not scene.asset or is_mjcf(resolve(scene.asset)) else (SCENE_PREFIX,)  # MJCF asks for each shadow
    lights = [i for i in range(model.nlight) if model.light(i).name.startswith((DEFAULT_PREFIX, *own))]
    drop_useless_shadows(model, lights)
    return CompiledScene(scene, model)


def _composed(scene: SceneSpec, timestep: float, contact: ContactCfg | None) -> mujoco.MjSpec:
    if not scene.joints:
        return compose(scene, timestep, contact)
    unjoined = compile_scene(dataclasses.replace(scene, joints=()), timestep)  # where bodies are at the start
    scene = fix_bases(scene, unjoined)
    spec = compose(scene, timestep, contact)
    add_joints(spec, scene, unjoined)
    return spec
