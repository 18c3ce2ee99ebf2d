"""Prims of USD as text, as the stage writer writes them: physics scene, bodies, and joints with their drives."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import mujoco
import numpy as np

from internutopia.engines.physx.bodies import Floats
from internutopia.engines.physx.shapes import vector_text
from internutopia.model.physx_attributes import Attributes

SLIDE, BALL = int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_BALL)
_X = np.array([1.0, 0.0, 0.0])
_SHIFTS, _TURNS = ('transX', 'transY', 'transZ'), ('rotX', 'rotY', 'rotZ')
REPORT = 'float physxContactReport:threshold = 0\n'
_SOLVER: Attributes = {
    'solverPositionIterationCount': 16,
    'solverVelocityIterationCount': 1,
    'sleepThreshold': 0.0,
    'stabilizationThreshold': 0.0,
}
ARTICULATION: Attributes = {f'physxArticulation:{name}': value for name, value in _SOLVER.items()}
BODY: Attributes = {
    **{f'physxRigidBody:{name}': value for name, value in _SOLVER.items()},
    'physxRigidBody:linearDamping': 0.0,
    'physxRigidBody:angularDamping': 0.0,
    'physxRigidBody:maxAngularVelocity': 1e7,
}


def scene_text(
    model: mujoco.MjModel,
    name: str,
    shared: bool = False,
    gpu: bool = False,
    capacities: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """Return the prim of a physics scene with the gravity of a model.

    Capacities are those of buffers on a GPU, by attributes of `PhysxSceneAPI`.
    """
    size, direction = gravity_of(model)
    buffers = ''.join(f'uint physxScene:{buffer} = {count}\n' for buffer, count in capacities.items())
    return prim_text(
        'PhysicsScene',
        name,
        '"PhysxSceneAPI"',
        f'vector3f physics:gravityDirection = {vector_text(direction)}\nfloat physics:gravityMagnitude = {size:.9g}\n'
        f'bool physxScene:enableGPUDynamics = {str(gpu).lower()}\n'
        f'uniform token physxScene:broadphaseType = "{"GPU" if gpu else "SAP"}"\n'
        f'bool physxScene:invertCollisionGroupFilter = {str(shared).lower()}\n'
        'bool physxScene:disableSleeping = true\nbool physxScene:enableStabilization = false\n'
        f'bool physxScene:enableSceneQuerySupport = false\n{buffers}',
    )


def gravity_of(model: mujoco.MjModel) -> tuple[float, Floats]:
    """Return size [m/s^2] and direction of the gravity of a model."""
    gravity = model.opt.gravity
    disabled = model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
    size = 0.0 if disabled else float(np.linalg.norm(gravity))
    return size, gravity / size if size else np.array([0.0, 0.0, -1.0])


def prim_text(kind: str, name: str, schemas: str, text: str) -> str:
    """Return a prim with schemas, as a list of USD, and what is in it."""
    applied = f' (\nprepend apiSchemas = [{schemas}]\n)' if schemas else ''
    return f'def {kind} "{name}"{applied}\n{{\n{text}}}\n'


def attribute_text(attributes: Attributes) -> str:
    """Return attributes of PhysX's schemas."""
    lines = []
    for name, value in attributes.items():
        if isinstance(value, str):
            lines.append(f'uniform token {name} = "{value}"\n')
        elif isinstance(value, bool):
            lines.append(f'bool {name} = {str(value).lower()}\n')
        else:
            lines.append(f'{"int" if name.endswith("Count") else "float"} {name} = {value:.9g}\n')
    return ''.join(lines)


def pose_text(position: Floats, orientation: Floats, scale: Floats | None = None) -> str:
    """Return the transform of a prim."""
    operations = [('double3', 'translate', position), ('quatd', 'orient', orientation)]
    if scale is not None:
        operations.append(('double3', 'scale', scale))
    lines = [f'{kind} xformOp:{name} = {vector_text(values)}' for kind, name, values in operations]
    order = ', '.join(f'"xformOp:{name}"' for _, name, _ in operations)
    return '\n'.join([*lines, f'uniform token[] xformOpOrder = [{order}]\n'])


def mass_text(mass: float) -> str:
    """Return a mass [kg] with inertia, until tensors write both."""
    return f'float physics:mass = {mass:.9g}\nfloat3 physics:diagonalInertia = ({mass:.9g}, {mass:.9g}, {mass:.9g})\n'


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
