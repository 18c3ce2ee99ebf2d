"""Schemas and prims of physics engines in USD files: PhysX's, MuJoCo's and Newton's.

What is read: armature, damping, friction, springs and effort limits of joints, actuators on joints, and whether an
articulation collides with itself. All else that a file has of these schemas is warned of by name.

Numbers of MuJoCo are per radian; angles are in degrees unless the physics scene has another unit. Newton's damping is
per degree, as that of USD's own drives.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from internutopia.model.importers import FileWarnings
from internutopia.model.importers.usd.values import bound_material, named_by_prim, value
from internutopia.model.physx_attributes import COMBINE_MODES, LENGTHS, MODES, TAG

if TYPE_CHECKING:
    from pxr import Usd

_DEGREE = np.pi / 180  # [rad]
_LIMITED = {
    'auto': mujoco.mjtLimited.mjLIMITED_AUTO,
    'true': mujoco.mjtLimited.mjLIMITED_TRUE,
    'false': mujoco.mjtLimited.mjLIMITED_FALSE,
}
_TYPES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    'mjc:gainType': ('gaintype', {'fixed': mujoco.mjtGain.mjGAIN_FIXED, 'affine': mujoco.mjtGain.mjGAIN_AFFINE}),
    'mjc:biasType': ('biastype', {'none': mujoco.mjtBias.mjBIAS_NONE, 'affine': mujoco.mjtBias.mjBIAS_AFFINE}),
    'mjc:dynType': (
        'dyntype',
        {
            'none': mujoco.mjtDyn.mjDYN_NONE,
            'integrator': mujoco.mjtDyn.mjDYN_INTEGRATOR,
            'filter': mujoco.mjtDyn.mjDYN_FILTER,
            'filterexact': mujoco.mjtDyn.mjDYN_FILTEREXACT,
        },
    ),
}
_LISTS = {'mjc:gear': 'gear', 'mjc:gainPrm': 'gainprm', 'mjc:biasPrm': 'biasprm', 'mjc:dynPrm': 'dynprm'}
_RANGES = {'ctrl': 'ctrlrange', 'force': 'forcerange', 'act': 'actrange'}
_OF_ACTUATORS = {
    *('mjc:target', *_TYPES, *_LISTS),
    *(f'mjc:{kind}{end}' for kind in _RANGES for end in ('Limited', 'Range:min', 'Range:max')),
}
_OF_JOINTS = {
    *(f'mjc:{name}' for name in ('armature', 'damping', 'frictionloss', 'stiffness', 'springref')),
    *(f'mjc:actuatorfrc{end}' for end in ('range:min', 'range:max', 'limited')),
    *(f'newton:{name}' for name in ('armature', 'damping', 'friction')),
}
_ELSEWHERE = {'mjc:compiler:angle', 'newton:selfCollisionEnabled'}


@dataclass(frozen=True)
class Passive:
    """Passive forces of a joint, in the file's units of length and mass, per radian if it turns.

    `rest` is where its spring is relaxed; `efforts` the range of what actuators can do to it, None without a limit.
    """

    armature: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    efforts: tuple[float, float] | None = None


@named_by_prim
def passive(joint: Usd.Prim, turns: bool) -> Passive:
    """Read the passive forces of a joint from the schemas. ValueError for invalid numbers."""

    def number(name: str) -> float | None:
        found = value(joint, name)
        if found is not None and (not np.isfinite(found) or found < 0):
            raise ValueError(f'{joint.GetPath()}: {name} cannot be {found}')
        return found

    newton_damping = number('newton:damping') or 0.0
    damping = number('mjc:damping')
    friction = number('mjc:frictionloss')
    armature = number('mjc:armature')
    rest = float(value(joint, 'mjc:springref') or 0.0)
    limits = [value(joint, f'mjc:actuatorfrcrange:{end}') for end in ('min', 'max')]
    limited = value(joint, 'mjc:actuatorfrclimited') != 'false' and None not in limits
    return Passive(
        armature=armature if armature is not None else number('newton:armature') or 0.0,
        damping=damping if damping is not None else newton_damping / (_DEGREE if turns else 1.0),
        friction=friction if friction is not None else number('newton:friction') or 0.0,
        stiffness=number('mjc:stiffness') or 0.0,
        rest=rest * _DEGREE if rest and turns and _in_degrees(joint) else rest,
        efforts=(float(limits[0]), float(limits[1])) if limited else None,
    )


def collides_with_itself(root: Usd.Prim) -> bool:
    """Return True if links of the articulation with this root collide, as PhysX and Newton have it."""
    schemas = 'physxArticulation:enabledSelfCollisions', 'newton:selfCollisionEnabled'
    return all(value(root, name) is not False for name in schemas)


def add_actuators(
    spec: mujoco.MjSpec, joints: Mapping[str, Sequence[str]], found: Iterable[Usd.Prim], warnings: FileWarnings
) -> None:
    """Add the actuators of a file, as their prims are called. `joints`: names of MuJoCo's joints by their prims' paths.

    ValueError naming the prim for values that cannot be.
    """
    taken = set[str]()
    for prim in found:
        if prim.GetTypeName() == 'MjcActuator':
            targets = [str(path) for path in prim.GetRelationship('mjc:target').GetForwardedTargets()]
            names = joints.get(targets[0], ()) if targets else ()
            if len(names) != 1:
                warnings.add('actuators are only supported on a hinge or slide of a tree; left out', prim)
                continue
            name = prim.GetName() if prim.GetName() not in taken else str(prim.GetPath())
            taken.add(name)
            _add_actuator(prim, spec, name, names[0], warnings)


def warn_of_unread(found: Iterable[Usd.Prim], warnings: FileWarnings) -> None:
    """Warn of attributes of these schemas that are not read, by name."""
    for prim in found:
        kind = str(prim.GetTypeName())
        if kind.startswith(('Mjc', 'Newton')) and kind != 'MjcActuator':
            warnings.add(f'{kind} is left out', prim)
            continue
        read = _OF_ACTUATORS if kind == 'MjcActuator' else _OF_JOINTS if kind.endswith('Joint') else _ELSEWHERE
        for namespace in ('mjc', 'newton'):
            for attribute in prim.GetAuthoredPropertiesInNamespace(namespace):
                if attribute.GetName() not in read:
                    warnings.add(f'{attribute.GetName()} is not read', prim)


@named_by_prim
def _add_actuator(prim: Usd.Prim, spec: mujoco.MjSpec, name: str, joint: str, warnings: FileWarnings) -> None:
    actuator = spec.add_actuator(name=name, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    for attribute, (field, known) in _TYPES.items():
        token = value(prim, attribute)
        if token is not None and token not in known:
            warnings.add(f'{attribute} {token!r} is read as {next(iter(known))!r}', prim)
        elif token is not None:
            setattr(actuator, field, known[token])
    for attribute, field in _LISTS.items():
        numbers = value(prim, attribute)
        if numbers:
            getattr(actuator, field)[: len(numbers)] = numbers
    for kind, field in _RANGES.items():
        ends = [value(prim, f'mjc:{kind}Range:{end}') or 0.0 for end in ('min', 'max')]
        if any(ends):
            setattr(actuator, field, ends)
        limited = value(prim, f'mjc:{kind}Limited') or 'auto'
        if limited not in _LIMITED:
            raise ValueError(f'mjc:{kind}Limited must be one of {", ".join(_LIMITED)}, it is {limited!r}')
        setattr(actuator, f'{kind}limited', _LIMITED[limited])


def _in_degrees(prim: Usd.Prim) -> bool:
    """Return True if angles of MuJoCo in a file are in degrees."""
    from pxr import UsdPhysics

    scene = next((scene for scene in prim.GetStage().Traverse() if scene.IsA(UsdPhysics.Scene)), None)
    return scene is None or value(scene, 'mjc:compiler:angle') != 'radian'


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
