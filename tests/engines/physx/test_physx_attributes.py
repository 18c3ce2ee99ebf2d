"""Attributes of PhysX in files of USD, in centimetres here, count on PhysX."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.model.importers import usd
from internutopia.model.physx_attributes import physx_attributes

DT, GRAVITY = 1 / 240, 9.81


def ball(name: str, x: float, z: float, attributes: str = '', schema: str = 'PhysxRigidBodyAPI') -> str:
    return f'''
    def Sphere "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "{schema}"])
    {{
        double radius = 10
        double3 xformOp:translate = ({x}, 0, {z})
        uniform token[] xformOpOrder = ["xformOp:translate"]
        {attributes}
    }}'''


OFFSETS = 'float physxCollision:restOffset = 2\nfloat physxCollision:contactOffset = 4'
STAGE = f"""#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 0.01
    upAxis = "Z"
)
def Xform "World"
{{
    def PhysicsScene "physics"
    {{
        vector3f physics:gravityDirection = (0, 0, -1)
        float physics:gravityMagnitude = 981
    }}
    def Cube "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {{
        double size = 2
        double3 xformOp:translate = (0, 0, -50)
        double3 xformOp:scale = (2000, 2000, 50)
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
    }}
    {ball('plain', 0, 2000)}
    {ball('damped', 100, 2000, 'float physxRigidBody:linearDamping = 2')}
    {ball('slow', 200, 2000, 'float physxRigidBody:maxLinearVelocity = 100')}
    {ball('lifted', 300, 14, OFFSETS, 'PhysxCollisionAPI')}
    def Xform "arm" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])
    {{
        double3 xformOp:translate = (500, 0, 500)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def Sphere "bob" (prepend apiSchemas = ["PhysicsCollisionAPI"])
        {{
            double radius = 10
            double3 xformOp:translate = (100, 0, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }}
        def PhysicsRevoluteJoint "hinge" (prepend apiSchemas = ["PhysxJointAPI"])
        {{
            uniform token physics:axis = "Y"
            rel physics:body1 = </World/arm>
            point3f physics:localPos0 = (500, 0, 500)
            float physxJoint:maxJointVelocity = 90
        }}
    }}
}}
"""


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    file = tmp_path / 'stage.usda'
    file.write_text(STAGE)
    return file


def test_attributes_of_a_file_count(start: Callable[..., Any], stage: Path) -> None:
    world = start(scene=str(stage))
    joints = world.articulation('scene/', 0)
    fastest = 0.0
    for _ in range(240):
        world.step(np.array([0]))
        fastest = max(fastest, float(np.abs(joints.get_joint_velocities()).max()))

    def speed(name: str) -> float:
        return -float(world.body(f'World/{name}', 0).get_velocities()[0][0, 2])

    damped = 0.0
    for _ in range(240):
        damped = damped * (1 - 2 * DT) + GRAVITY * DT
    assert speed('plain') == pytest.approx(GRAVITY, rel=1e-4)
    assert speed('damped') == pytest.approx(damped, rel=1e-4)
    assert speed('slow') == pytest.approx(1.0 + GRAVITY * DT, rel=1e-3)  # bounded before gravity acts
    assert float(world.body('World/lifted', 0).get_poses()[0][0, 2]) == pytest.approx(0.12, abs=1e-3)
    assert fastest == pytest.approx(np.pi / 2, rel=1e-3)


def test_they_are_kept_in_metres(stage: Path) -> None:
    spec, warnings = usd.load_with_warnings(stage)
    found = physx_attributes(spec.compile())
    assert found['/World/slow'] == {'physxRigidBody:maxLinearVelocity': pytest.approx(1.0)}
    lifted = {'physxCollision:contactOffset': pytest.approx(0.04), 'physxCollision:restOffset': pytest.approx(0.02)}
    assert found['/World/lifted'] == lifted
    assert '/World/plain' not in found
    assert [line for line in warnings if 'PhysX' in line] == [
        'physxRigidBody:linearDamping counts on PhysX only: /World/damped',
        'physxJoint:maxJointVelocity counts on PhysX only: /World/arm/hinge',
    ]
