"""Geometry of robots in compiled MuJoCo models: kinematic chains, footprints, bodies and geoms.

A footprint is what links collide with, and how that shrinks along x and y of each link.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.batched.env_batch import Index
from internutopia.engines.batched.view import ViewSlice
from internutopia.model.kinematics import Array, KinematicChain, joint_ranges
from internutopia.model.layouts import ArticulationLayout
from internutopia.util import did_you_mean


def chain_of(model: mujoco.MjModel, robot: ArticulationLayout, base: str, tip: str) -> KinematicChain:
    """Return the joints between two links of a robot. KeyError for no such link, ValueError if none is below the other.

    Args:
        model: the compiled scene.
        robot: where the robot is in it.
        base: link that the chain starts at; `''` is the root.
        tip: link that it ends at.
    """
    for link in (base, tip):
        if link and link not in robot.bodies:
            raise KeyError(f'robot {robot.name!r} has no link {link!r}; {did_you_mean(link, robot.bodies)}')
    start = robot.bodies[base].body if base else robot.root.body
    path = [robot.bodies[tip].body]
    while path[-1] != start:
        path.append(int(model.body_parentid[path[-1]]))
        if path[-1] == 0:
            raise ValueError(f'link {tip!r} of robot {robot.name!r} does not hang on {base or "its root"!r}')
    dof_of = {int(joint): dof for dof, joint in enumerate(robot.joint_ids)}
    joints: list[int] = []
    fixed, pending = [], np.eye(4)
    for body in path[-2::-1]:
        pending = pending @ _pose(model.body_pos[body], model.body_quat[body])
        first = model.body_jntadr[body]
        for joint in range(first, first + model.body_jntnum[body]):
            anchor, axis = model.jnt_pos[joint], model.jnt_axis[joint]
            if joint not in dof_of:
                raise ValueError(f'joint {model.joint(joint).name!r} neither turns about an axis nor slides along one')
            # the anchor stays where it is while the body turns about it
            fixed.append(pending @ _pose(anchor))
            pending = _pose(-anchor)
            if reference := model.qpos0[model.jnt_qposadr[joint]]:
                pending = (
                    _motion(axis, -reference, bool(model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE)) @ pending
                )
            joints.append(joint)
    ids = np.array(joints, np.intp)
    return KinematicChain(
        joints=np.array([dof_of[joint] for joint in joints], np.intp),
        ranges=joint_ranges(model, ids),
        fixed=np.stack([*fixed, pending]),
        axes=model.jnt_axis[ids].copy(),
        slides=model.jnt_type[ids] == mujoco.mjtJoint.mjJNT_SLIDE,
    )


def _pose(position: Array, orientation: Array | None = None) -> Array:
    pose = np.eye(4)
    pose[:3, 3] = position
    if orientation is not None:
        matrix = np.empty(9)
        mujoco.mju_quat2Mat(matrix, np.asarray(orientation, np.float64))
        pose[:3, :3] = matrix.reshape(3, 3)
    return pose


def _motion(axis: Array, amount: float, slides: bool) -> Array:
    """Return the motion of a joint at position `amount`."""
    if slides:
        return _pose(amount * axis)
    quaternion = np.empty(4)
    mujoco.mju_axisAngle2Quat(quaternion, axis, amount)
    return _pose(np.zeros(3), quaternion)


def footprint_of(model: mujoco.MjModel, bodies: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array, Array, Array]:
    """Return the collision geoms of links, in the links' frames and the model's own size.

    Returns:
        their ids in the model `(k,)`; the mean place of all geoms of the same link and the place relative to that
        `(k, 3)` [m]; and from the middle of a capsule to the centre of its end, of other geoms, along z, their second
        size, which stays what it is `(k, 3)` [m].
    """
    solid = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    geoms = np.flatnonzero(np.isin(model.geom_bodyid, bodies) & solid)
    positions, links = model.geom_pos[geoms], model.geom_bodyid[geoms]
    middles = np.array([positions[links == link].mean(axis=0) for link in links]).reshape(-1, 3)
    axes = np.tile([0.0, 0.0, 1.0], (len(geoms), 1))
    for axis, geom in zip(axes, geoms, strict=True):
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE:
            mujoco.mju_rotVecQuat(axis, axis.copy(), model.geom_quat[geom])
    return geoms, middles, positions - middles, axes * model.geom_size[geoms, 1:2]


def bodies_of(view_slice: ViewSlice, links: Sequence[str]) -> NDArray[np.intp]:
    """Return the model's bodies that are links of a robot."""
    return np.array([view_slice.layout.bodies[link].body for link in links], np.intp)


def geoms_of(view_slice: ViewSlice) -> Index:
    """Return the geoms of a robot."""
    bodies = bodies_of(view_slice, tuple(view_slice.layout.bodies))
    return view_slice.index(np.flatnonzero(np.isin(view_slice.batch.scene.model.geom_bodyid, bodies)))
