"""Joints: joint prims -> `Joint`: its bodies, frames, degrees of freedom, limits and drives.

Everything is in SI units: angles, and gains and targets per angle, are in radians here and in degrees in USD.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from internutopia.model.importers import FileWarnings
from internutopia.model.importers.transforms import Frame, from_quat, polar
from internutopia.model.importers.usd.engine_schemas import Passive, passive
from internutopia.model.importers.usd.values import named_by_prim, value

if TYPE_CHECKING:
    from pxr import Usd

    from internutopia.model.importers.usd.rigid_bodies import PhysicsReader
    from internutopia.model.importers.usd.stage_transforms import StageTransforms

WORLD = ''
"""Placeholder for the path of a body where a joint is attached to the static scene."""

_AXES = ('X', 'Y', 'Z')
_UNREAD = ('physics:breakForce', 'physics:breakTorque')
_LOCKED = (1.0, -1.0)  # USD's limits of an axis that does not move
_DEGREE = np.pi / 180  # [rad]


@dataclass(frozen=True)
class Drive:
    """A spring-damper towards a target: `stiffness * (target - q) + damping * (velocity - v)`, at most `limit`.

    In SI units; if `acceleration`, gains and limit are per inertia [1/s2, 1/s, rad/s2 or m/s2].
    """

    stiffness: float
    damping: float
    target: float
    velocity: float
    limit: float
    acceleration: bool


@dataclass(frozen=True)
class Dof:
    """A turn about, or a slide along, one axis of a joint's frame (0, 1, 2: x, y, z).

    `lower` and `upper` [rad or m] are infinite where it has no limit. `state`: its position in the file [rad or m].
    `name` is what the degree of freedom is called among those of its joint, for example `rotX` or `angular`; `unit` the
    size of the file's unit of its position [rad or m].
    """

    name: str
    turns: bool
    unit: float
    axis: int
    lower: float
    upper: float
    drive: Drive | None
    state: float | None
    passive: Passive

    @property
    def locked(self) -> float | None:
        """Position at which it is locked [rad or m]; None if it can move."""
        return None if self.lower < self.upper else self.lower if self.lower == self.upper else 0.0


@dataclass(frozen=True)
class Joint:
    """A joint between `bodies[0]` and `bodies[1]`, whose frames on them (world axes, as authored) are `frames`.

    The second frame has moved, relative to the first one, along its slides in order and then by its turns in order;
    `ball`: by any turn. A joint with a `distance` `(least, greatest)` [m] only keeps the origins of its frames that far
    from each other. `holder`: path of the prim of the static scene that it names in place of a body, if it does.
    """

    prim: Usd.Prim
    bodies: tuple[str, str]
    frames: tuple[Frame, Frame]
    dofs: tuple[Dof, ...] = ()
    ball: bool = False
    cone: float = np.inf
    distance: tuple[float, float] | None = None
    excluded: bool = False
    holder: str = ''

    @property
    def path(self) -> str:
        """Path of the prim."""
        return str(self.prim.GetPath())


@named_by_prim
def read_joint(
    prim: Usd.Prim, physics: PhysicsReader, transforms: StageTransforms, warnings: FileWarnings
) -> Joint | None:
    """Return the joint that a prim describes; None for one that is switched off or acts on nothing.

    ValueError naming the prim for ends that are no bodies.
    """
    from pxr import UsdPhysics

    if not value(prim, 'physics:jointEnabled'):
        warnings.add('switched off joint', prim)
        return None
    ends = [_end(prim, side, physics, transforms, warnings) for side in (0, 1)]
    if ends[0] is None or ends[1] is None:
        return None
    (body0, frame0, _), (body1, frame1, _) = ends[0], ends[1]
    if body0 == body1:
        if body0 != WORLD:
            warnings.add('joint of a body with itself', prim)
            return None
        raise ValueError(f'{prim.GetPath()}: this joint needs a rigid body in body0 or body1, it has {_targets(prim)}')
    if value(prim, 'physics:collisionEnabled') and WORLD not in (body0, body1):
        warnings.add('bodies connected by a joint do not collide, although collisionEnabled is set', prim)
    for name in _UNREAD:
        if (value(prim, name) or np.inf) < np.inf:
            warnings.add(f'{name} has no counterpart', prim)
    excluded = bool(value(prim, 'physics:excludeFromArticulation'))
    bodies, frames = (body0, body1), (frame0, frame1)
    holder = ends[0][2] or ends[1][2]
    if prim.IsA(UsdPhysics.DistanceJoint):
        least, greatest = (value(prim, f'physics:{side}Distance') * transforms.metres for side in ('min', 'max'))
        distance = (max(least, 0.0), greatest if greatest >= 0 else np.inf)
        return Joint(prim, bodies, frames, distance=distance, excluded=excluded, holder=holder)
    dofs, ball = _degrees_of_freedom(prim, frame0, transforms, warnings)
    cone = np.inf
    if prim.IsA(UsdPhysics.SphericalJoint):
        angles = [value(prim, f'physics:coneAngle{i}Limit') for i in (0, 1)]
        cone = np.radians(max((angle for angle in angles if 0 <= angle < np.inf), default=np.inf))
        if cone < np.inf:
            warnings.add('the cone limit applies to the total rotation of the ball joint, including twist', prim)
    return Joint(prim, bodies, frames, dofs, ball, float(cone), excluded=excluded, holder=holder)


def _targets(prim: Usd.Prim) -> str:
    ends = {side: prim.GetRelationship(f'physics:body{side}').GetForwardedTargets() for side in (0, 1)}
    return ' and '.join(f'body{side} = {", ".join(map(str, paths)) or "none"}' for side, paths in ends.items())


def _end(
    prim: Usd.Prim, side: int, physics: PhysicsReader, transforms: StageTransforms, warnings: FileWarnings
) -> tuple[str, Frame, str] | None:
    """Return path of the body at one side of a joint, the joint's frame there, and path of a static prim it names.

    None if that prim is not active.
    """
    from pxr import UsdGeom

    targets = prim.GetRelationship(f'physics:body{side}').GetForwardedTargets()
    matrix, body, static = transforms.units, WORLD, ''
    if targets:
        target = prim.GetStage().GetPrimAtPath(targets[0])
        if target and not (target.IsActive() and target.IsDefined()):
            warnings.add('joint to a prim that is not active', prim)
            return None
        if not target and warnings.incomplete:
            warnings.add('joint to a prim that does not exist', prim)
            return None
        if not target or not target.IsA(UsdGeom.Xformable):
            what = 'is no prim with a pose' if target else 'does not exist'
            raise ValueError(f'{prim.GetPath()}: body{side} must be a rigid body, but {targets[0]} {what}')
        matrix = transforms.matrix(target)
        owner = physics.body_of(target)
        body = str(owner.GetPath()) if owner else WORLD
        static = '' if owner else str(targets[0])
    position = np.array([*value(prim, f'physics:localPos{side}'), 1.0])
    quat = value(prim, f'physics:localRot{side}')
    quat = np.array([quat.GetReal(), *quat.GetImaginary()])
    if not (np.isfinite(position).all() and np.isfinite(quat).all() and quat.any()):
        raise ValueError(f'{prim.GetPath()}: localPos{side} and localRot{side} must be finite and not all zero')
    return body, Frame((matrix @ position)[:3], polar(matrix[:3, :3])[0] @ from_quat(quat)), static


def _degrees_of_freedom(
    prim: Usd.Prim, frame: Frame, transforms: StageTransforms, warnings: FileWarnings
) -> tuple[tuple[Dof, ...], bool]:
    """Return the axes of its first frame that a joint may move along, and True for a ball joint."""
    from pxr import UsdPhysics

    if prim.IsA(UsdPhysics.FixedJoint):
        return (), False
    if prim.IsA(UsdPhysics.SphericalJoint):
        return (), True
    for kind, name in (UsdPhysics.RevoluteJoint, 'angular'), (UsdPhysics.PrismaticJoint, 'linear'):
        if prim.IsA(kind):
            turns = name == 'angular'
            if value(prim, 'physics:axis') not in _AXES:
                raise ValueError(f'physics:axis must be X, Y or Z, it is {value(prim, "physics:axis")!r}')
            limits = value(prim, 'physics:lowerLimit'), value(prim, 'physics:upperLimit')
            axis = _AXES.index(value(prim, 'physics:axis'))
            dof = _dof(prim, name, turns, axis, limits, frame, transforms)
            if dof.locked is not None:
                warnings.add('a joint without a range between its limits is fixed', prim)
            return (dof,), False
    dofs = []
    for group in ('trans', 'rot'):
        for axis, letter in enumerate(_AXES):
            name = f'{group}{letter}'
            # read also without LimitAPI: some files do not apply it
            low, high = (value(prim, f'limit:{name}:physics:{side}') for side in ('low', 'high'))
            limits = -np.inf if low is None else low, np.inf if high is None else high
            dofs.append(_dof(prim, name, group == 'rot', axis, limits, frame, transforms))
    if prim.HasAPI(UsdPhysics.LimitAPI, 'distance'):
        warnings.add('distance limit of a joint with six axes', prim)
    rotations = dofs[3:]
    ball = all(dof.lower == -np.inf and dof.upper == np.inf and dof.drive is None for dof in rotations)
    kept = dofs[:3] if ball else dofs
    return tuple(dof for dof in kept if dof.locked != 0.0), ball


def _dof(
    prim: Usd.Prim,
    name: str,
    turns: bool,
    axis: int,
    limits: tuple[float, float],
    frame: Frame,
    transforms: StageTransforms,
) -> Dof:
    unit = _DEGREE if turns else transforms.metres_along(frame.rotation[:, axis])
    inertia = transforms.kilograms * (transforms.unit**2 if turns else 1.0)  # or mass: of what moves along
    if np.isnan(limits).any():
        raise ValueError(f'{prim.GetPath()}: limits must be numbers, got {limits[0]} and {limits[1]}')
    lower, upper = limits if limits[0] <= limits[1] else _LOCKED
    state = value(prim, f'state:{name}:physics:position')
    own = passive(prim, turns)
    return Dof(
        name=name,
        turns=turns,
        unit=unit,
        axis=axis,
        lower=float(lower * unit),
        upper=float(upper * unit),
        drive=_drive(prim, name, turns, unit, inertia, transforms),
        state=None if state is None else float(state * unit),
        passive=Passive(
            armature=float((value(prim, 'physxJoint:armature') or own.armature) * inertia),
            damping=own.damping * inertia,
            friction=float((value(prim, 'physxJoint:jointFriction') or own.friction) * inertia),
            stiffness=own.stiffness * inertia,
            rest=own.rest if turns else own.rest * unit,
            efforts=own.efforts,
        ),
    )


def _drive(
    prim: Usd.Prim, name: str, turns: bool, unit: float, inertia: float, transforms: StageTransforms
) -> Drive | None:
    """Return a degree of freedom's drive; `unit` [rad or m]: of targets; `inertia` [kg m2 or kg]: the file's."""
    from pxr import UsdPhysics

    if not prim.HasAPI(UsdPhysics.DriveAPI, name):
        return None
    numbers = ('stiffness', 'damping', 'targetPosition', 'targetVelocity', 'maxForce')
    given = {number: float(value(prim, f'drive:{name}:physics:{number}')) for number in numbers}
    wrong = next((n for n, x in given.items() if np.isnan(x) or (n in ('stiffness', 'damping') and x < 0)), None)
    if wrong:
        raise ValueError(f'{prim.GetPath()}: drive:{name}:physics:{wrong} cannot be {given[wrong]}')
    acceleration = value(prim, f'drive:{name}:physics:type') == 'acceleration'
    force = (1.0 if acceleration else inertia) * (1.0 if turns else transforms.unit)
    per = _DEGREE if turns else transforms.unit  # gains stay, however the stage is scaled
    return Drive(
        stiffness=given['stiffness'] * force / per,
        damping=given['damping'] * force / per,
        target=given['targetPosition'] * unit,
        velocity=given['targetVelocity'] * unit,
        limit=given['maxForce'] * force,
        acceleration=acceleration,
    )


def unwrapped(angle: float, lower: float, upper: float) -> float:
    """Return an angle [rad] plus or minus whole turns, if that brings it within limits or closer to them."""
    if lower <= angle <= upper:
        return angle
    nearest = lower if angle < lower else upper
    other = angle + 2 * np.pi * np.round((nearest - angle) / (2 * np.pi))
    return float(other) if lower - 1e-6 <= other <= upper + 1e-6 else angle
