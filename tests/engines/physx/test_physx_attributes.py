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


MATERIALS = """
    def Material "{name}" (prepend apiSchemas = ["PhysicsMaterialAPI", "PhysxMaterialAPI"])
    {{
        float physics:staticFriction = {static}
        float physics:dynamicFriction = {dynamic}
        {own}
    }}"""
BOUND = 'def Cube "{name}" (prepend apiSchemas = [{bodies}"PhysicsCollisionAPI", "MaterialBindingAPI"])'


def block(name: str, y: float, z: float, size: float, material: str, loose: bool) -> str:
    bodies = '"PhysicsRigidBodyAPI", "PhysicsMassAPI", ' if loose else ''
    mass = 'float physics:mass = 2000' if loose else ''  # grams
    return f"""
    {BOUND.format(name=name, bodies=bodies)}
    {{
        double size = {size}
        double3 xformOp:translate = (0, {y}, {z})
        uniform token[] xformOpOrder = ["xformOp:translate"]
        rel material:binding:physics = </World/{material}>
        {mass}
    }}"""


SPRING = 'float physxMaterial:compliantContactStiffness = 1e6\nfloat physxMaterial:compliantContactDamping = 2e4'
TILT = np.radians(30.0)
MODED = 'uniform token physxMaterial:frictionCombineMode = "{}"'
SLIPPERY = f"""#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 0.01
    kilogramsPerUnit = 0.001
    upAxis = "Z"
)
def Xform "World"
{{
    def PhysicsScene "physics"
    {{
        vector3f physics:gravityDirection = ({np.sin(TILT)}, 0, {-np.cos(TILT)})
        float physics:gravityMagnitude = 981
    }}
    {MATERIALS.format(name='ground', static=0.5, dynamic=0.5, own='')}
    {MATERIALS.format(name='sticky', static=1.0, dynamic=0.1, own=MODED.format('max'))}
    {MATERIALS.format(name='slick', static=0.5, dynamic=0.5, own=MODED.format('multiply'))}
    {MATERIALS.format(name='soft', static=0.5, dynamic=0.5, own=SPRING)}
    {block('floor', 0, -2000, 4000, 'ground', False)}
    {block('stays', 0, 10, 20, 'sticky', True)}
    {block('slides', 100, 10, 20, 'slick', True)}
    {block('sinks', 200, 10, 20, 'soft', True)}
}}
"""


def test_materials_of_a_file_count(start: Callable[..., Any], tmp_path: Path) -> None:
    """Static friction, combine modes and compliant contacts, on ground that is inclined."""
    file = tmp_path / 'slippery.usda'
    file.write_text(SLIPPERY)
    world = start(scene=str(file))
    for _ in range(240):
        assert not world.step(np.array([0]))
    place = {name: world.body(f'World/{name}', 0).get_poses()[0][0] for name in ('stays', 'slides', 'sinks')}
    assert place['stays'] == pytest.approx([0, 0, 0.1], abs=1e-3), 'its static friction is twice its dynamic one'
    slid = GRAVITY * (np.sin(TILT) - 0.25 * np.cos(TILT)) / 2
    assert place['slides'][0] == pytest.approx(slid, rel=0.02), 'frictions are multiplied'
    depth = 2.0 * GRAVITY * np.cos(TILT) / (4 * 1000.0)
    assert 0.1 - place['sinks'][2] == pytest.approx(depth, rel=0.02), 'a spring of 1 N/mm at each of its corners'
