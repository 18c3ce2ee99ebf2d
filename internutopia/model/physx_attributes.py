"""PhysX attributes: what a file says to PhysX alone about bodies, colliders, joints and articulations.

They travel as custom texts of a model, so they are composed, cached and saved with it, as semantics do. A text
`physx:<element>` holds the attributes of all bodies, geoms and joints of that name as JSON, in metres, kilograms,
seconds and degrees: `{"physxRigidBody:linearDamping": 0.5}`. Those of an articulation are at its uppermost body.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import mujoco

from internutopia.model.groups import custom_texts

Attributes = Mapping[str, float | int | bool | str]

TAG = 'physx:'
LENGTHS = {
    'physxRigidBody:linearDamping': 0,
    'physxRigidBody:angularDamping': 0,
    'physxRigidBody:maxLinearVelocity': 1,
    'physxRigidBody:maxAngularVelocity': 0,
    'physxRigidBody:maxDepenetrationVelocity': 1,
    'physxRigidBody:enableGyroscopicForces': 0,
    'physxRigidBody:solverPositionIterationCount': 0,
    'physxRigidBody:solverVelocityIterationCount': 0,
    'physxArticulation:solverPositionIterationCount': 0,
    'physxArticulation:solverVelocityIterationCount': 0,
    'physxCollision:contactOffset': 1,
    'physxCollision:restOffset': 1,
    'physxCollision:torsionalPatchRadius': 1,
    'physxCollision:minTorsionalPatchRadius': 1,
    'physxJoint:maxJointVelocity': 1,  # of a hinge: 0
    'physics:staticFriction': 0,
    'physxMaterial:compliantContactStiffness': 0,
    'physxMaterial:compliantContactDamping': 0,
    'physxMaterial:compliantContactAccelerationSpring': 0,
}
"""The numbers that are read, and the power of the length in their unit (PhysxSchema)."""
COMBINE_MODES = ('average', 'min', 'multiply', 'max')
"""How materials combine, in PhysX's order: of two materials, the later mode counts."""
MODES = ('physxMaterial:frictionCombineMode', 'physxMaterial:restitutionCombineMode')
"""Attributes that are one of `COMBINE_MODES`."""


def physx_attributes(model: mujoco.MjModel) -> dict[str, Attributes]:
    """Return the attributes of elements by their name in a model. ValueError naming a broken text."""
    return {prefix + element: _parse(TAG + element, data) for prefix, element, data in custom_texts(model, TAG)}


def _parse(name: str, data: str) -> Attributes:
    try:
        found = json.loads(data)
        if not all(_is_known(key, value) for key, value in found.items()):
            raise TypeError(f'it is {data}')
    except (json.JSONDecodeError, AttributeError, TypeError) as error:
        raise ValueError(f'text {name!r} must be a JSON object of numbers, by attributes of PhysX: {error}') from error
    return found


def _is_known(name: str, value: object) -> bool:
    return value in COMBINE_MODES if name in MODES else name in LENGTHS and isinstance(value, float | int)
