"""Joints of PhysX: frames, units, drives, and joints that turn about all axes."""

from __future__ import annotations

import mujoco
import numpy as np

from internutopia.engines.physx.bodies import Floats
from internutopia.engines.physx.prims import prim_text
from internutopia.engines.physx.shapes import vector_text

SLIDE, BALL = int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_BALL)
_X = np.array([1.0, 0.0, 0.0])
_SHIFTS, _TURNS = ('transX', 'transY', 'transZ'), ('rotX', 'rotY', 'rotZ')


def joint_end_text(end: int, body: str, position: Floats, orientation: Floats) -> str:
    """Return attributes of a joint: the path of its first or second body, 0 or 1, and its frame there."""
    return (
        f'rel physics:body{end} = <{body}>\npoint3f physics:localPos{end} = {vector_text(position)}\n'
        f'quatf physics:localRot{end} = {vector_text(orientation)}\n'
    )


def ball_joint_text(name: str, ends: str) -> str:
    """Return the prim of a joint that only turns, with drives about its three axes; `ends`: bodies and frames."""
    schemas = [*(f'"PhysicsLimitAPI:{axis}"' for axis in _SHIFTS), *(f'"PhysicsDriveAPI:{axis}"' for axis in _TURNS)]
    locks = ''.join(f'float limit:{axis}:physics:low = 1\nfloat limit:{axis}:physics:high = -1\n' for axis in _SHIFTS)
    return prim_text('PhysicsJoint', name, ', '.join(schemas), ends + locks + drives_text(*_TURNS))


def drives_text(*axes: str) -> str:
    """Return attributes of drives, whose gains are written by tensors."""
    return ''.join(
        f'float drive:{axis}:physics:stiffness = 1\nfloat drive:{axis}:physics:damping = 1\n'
        f'float drive:{axis}:physics:maxForce = 1e30\nuniform token drive:{axis}:physics:type = "force"\n'
        for axis in axes
    )


def joint_unit(model: mujoco.MjModel, joint: int) -> float:
    """Return USD's unit of a joint's position, in rad or m."""
    return 1.0 if model.jnt_type[joint] == SLIDE else np.pi / 180


def joint_turn(model: mujoco.MjModel, joint: int) -> Floats:
    """Return the orientation of a joint's frame: its x axis is the joint's, or for a ball joint all are the link's."""
    if model.jnt_type[joint] == BALL:
        return np.array([1.0, 0.0, 0.0, 0.0])
    axis = model.jnt_axis[joint] / np.linalg.norm(model.jnt_axis[joint])
    if axis[0] < -1 + 1e-12:
        return np.array([0.0, 0.0, 1.0, 0.0])
    quaternion = np.concatenate([[1 + axis[0]], np.cross(_X, axis)])
    return quaternion / np.linalg.norm(quaternion)
