"""Attributes of PhysX on prims -> custom texts, as `internutopia.model.physx_attributes` reads them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import TYPE_CHECKING

import mujoco

from internutopia.model.importers.file_warnings import FileWarnings
from internutopia.model.importers.usd.values import bound_material, value
from internutopia.model.physx_attributes import COMBINE_MODES, LENGTHS, MODES, TAG

if TYPE_CHECKING:
    from pxr import Usd


_NOTABLE = (  # what moves, moves otherwise without them
    'physxRigidBody:linearDamping',
    'physxJoint:maxJointVelocity',
    'physxMaterial:compliantContactStiffness',
)
_OF_FORCES = 'physxMaterial:compliantContactStiffness', 'physxMaterial:compliantContactDamping'


class PhysxPrims:
    """What the prims of a stage say to PhysX alone, by the elements of its spec that they become."""

    def __init__(self, metres: float, kilograms: float, warnings: FileWarnings):
        """`metres`, `kilograms`: length and mass of the stage's units."""
        self._metres, self._kilograms, self._warnings = metres, kilograms, warnings
        self._found: defaultdict[str, dict[str, float | str]] = defaultdict(dict)

    def read(self, prim: Usd.Prim, schema: str, element: str, lengths: bool = True) -> None:
        """Read the attributes of a schema (`physxRigidBody`) that a file has; `lengths`: whether some are in metres."""
        for name, power in LENGTHS.items():
            if not name.startswith(f'{schema}:') or not prim.GetAttribute(name).HasAuthoredValue():
                continue
            number = value(prim, name)
            if number is None or not math.isfinite(number):
                continue  # PhysX's way to say that it is none
            if number and name in _NOTABLE:
                self._warnings.add(f'{name} counts on PhysX only', prim)
            if name in _OF_FORCES and not value(prim, 'physxMaterial:compliantContactAccelerationSpring'):
                number *= self._kilograms
            self._found[element][name] = number * self._metres**power if lengths and power else number

    def read_material(self, collider: Usd.Prim, element: str) -> None:
        """Read what the material of a collider has besides one friction and restitution."""
        material = bound_material(collider, 'physics')
        if material is None:
            return
        self.read(material, 'physxMaterial', element)
        if value(material, 'physics:staticFriction') != value(material, 'physics:dynamicFriction'):
            self.read(material, 'physics', element)
        self._found[element] |= {name: str(value(material, name) or COMBINE_MODES[0]) for name in MODES}

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Add a text for each element."""
        for element, attributes in self._found.items():
            spec.add_text(name=TAG + element, data=json.dumps(attributes))
