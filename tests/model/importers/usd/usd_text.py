"""Small USD files, written by tests."""

from __future__ import annotations

import mujoco
import numpy as np

EXACT = 1e-6  # transforms of a file are in single precision


def body(name: str, inside: str = '', apis: str = '', at: tuple[float, ...] = (0, 0, 0), kind: str = 'Cube') -> str:
    """A rigid body, a cube of 0.1 units; `inside`: more of its attributes and children."""
    return f"""
    def {kind} "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"{apis}]) {{
        {'double size = 0.1' if kind == 'Cube' else ''}
        double3 xformOp:translate = {at}
        uniform token[] xformOpOrder = ["xformOp:translate"]
        {inside}
    }}"""


def joint(kind: str, name: str, body0: str | None, body1: str | None, inside: str = '', apis: str = '') -> str:
    ends = ''.join(f'rel physics:body{i} = <{end}>\n' for i, end in enumerate((body0, body1)) if end)
    schemas = f'(prepend apiSchemas = [{apis}])' if apis else ''
    return f'\n    def Physics{kind}Joint "{name}" {schemas} {{\n{ends}{inside}\n}}'


def posed(model: mujoco.MjModel, **positions: float) -> mujoco.MjData:
    data = mujoco.MjData(model)
    for name, value in positions.items():
        data.joint(name).qpos[:] = value
    mujoco.mj_forward(model, data)
    return data


def turned(axis: str, degrees: float) -> str:
    half = np.radians(degrees) / 2
    vector = [np.sin(half) * (axis == letter) for letter in 'XYZ']
    return f'({np.cos(half)}, {", ".join(map(str, vector))})'


ARM = body('base') + body('link', at=(0.5, 0, 0))
HINGE = joint(
    *('Revolute', 'hinge', '/World/base', '/World/link'),
    inside="""
        uniform token physics:axis = "Z"
        float physics:lowerLimit = -90
        float physics:upperLimit = 45
        point3f physics:localPos1 = (-0.5, 0, 0)
        float drive:angular:physics:stiffness = 2
        float drive:angular:physics:damping = 0.5
        float drive:angular:physics:targetPosition = 30
        float drive:angular:physics:targetVelocity = 60
        float drive:angular:physics:maxForce = 7
        float physxJoint:armature = 0.02
        float physxJoint:jointFriction = 0.03""",
    apis='"PhysicsDriveAPI:angular"',
)
BOLT = joint('Fixed', 'bolt', None, '/World/base')
