"""Attributes of PhysX on prims -> custom texts, as `internutopia.model.physx_attributes` reads them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import TYPE_CHECKING

import mujoco

from internutopia.model.importers.file_warnings import FileWarnings
from internutopia.model.importers.usd.values import value
from internutopia.model.physx_attributes import LENGTHS, TAG

if TYPE_CHECKING:
    from pxr import Usd


_NOTABLE = 'physxRigidBody:linearDamping', 'physxJoint:maxJointVelocity'  # what moves, moves otherwise without them


class PhysxPrims:
    """What the prims of a stage say to PhysX alone, by the elements of its spec that they become."""

    def __init__(self, metres: float, warnings: FileWarnings):
        """`metres`: length of the stage's unit [m]."""
        self._metres, self._warnings = metres, warnings
        self._found: defaultdict[str, dict[str, float]] = defaultdict(dict)

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
            self._found[element][name] = number * self._metres**power if lengths and power else number

    def add_to(self, spec: mujoco.MjSpec) -> None:
        """Add a text for each element."""
        for element, attributes in self._found.items():
            spec.add_text(name=TAG + element, data=json.dumps(attributes))
