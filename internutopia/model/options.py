"""Options of a composed model: those of a scene and of its robots, merged into one set (`mujoco.MjOption`).

| options | come from |
|---|---|
| time step | the config |
| gravity, wind, medium, and what else is no matter of accuracy | the leading asset |
| integrator, cone, solver | the leading asset, or a robot that sets a stronger one |
| `impratio`, iterations, tolerances | likewise: greater ones, smaller tolerances |
| flags that are enabled | the leading asset; any that enables more contacts |
| flags that are disabled | the leading asset; of those that are no matter of physics, what all robots agree on |

The leading asset is the scene; without one, the first robot that brings its own actuators (a model that is driven as
its author meant it); else MuJoCo's defaults with `implicitfast`. An asset sets an option by a value that is not
MuJoCo's default. From weak to strong: Euler, RK4, implicitfast, implicit, discrete; PGS, CG, Newton; pyramidal,
elliptic.

These take precedence: `implicitfast` instead of Euler where an actuator or tendon is damped, which Euler would
integrate explicitly; `FOR_LOOSE_THINGS` where something lies about; `FOR_GRIPPERS` where a robot has joints called
fingers, gripper, knuckles or jaws; and last of all the user's `ContactCfg`. A robot's option that is not applied is
logged, once.

`FOR_LOOSE_THINGS` is a round and stiff friction cone: what is at rest stays there. A pyramid holds less across its
corners, so that boxes begin to slide at 0.7 times the friction, and creep on slopes in any case; passes against slip
(`noslip_iterations`) do not help it, and make a step of 64 boxes take ten times as long. The cone costs boxes nothing,
but legs a tenth of a step and more; so scenes without loose things, in which robots learn to walk, go without it.

`FOR_GRIPPERS` also solves contacts together with the damped drives of the fingers (`discrete`): elsewhere the solver
neglects that these drives hold the fingers back, overestimates damping, and fingers of little mass chatter. Nothing
bounces under `discrete`, so a scene where something does keeps its integrator.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np

from internutopia.config.simulator import ContactCfg
from internutopia.model.contacts import bounces
from internutopia.util.log import warn_once

_Integrator, _Solver, _Cone = mujoco.mjtIntegrator, mujoco.mjtSolver, mujoco.mjtCone
_Disable, _Enable = mujoco.mjtDisableBit, mujoco.mjtEnableBit

_WEAK_TO_STRONG = {
    'integrator': (
        _Integrator.mjINT_EULER,
        _Integrator.mjINT_RK4,
        _Integrator.mjINT_IMPLICITFAST,
        _Integrator.mjINT_IMPLICIT,
        _Integrator.mjINT_DISCRETE,
    ),
    'solver': (_Solver.mjSOL_PGS, _Solver.mjSOL_CG, _Solver.mjSOL_NEWTON),
    'cone': (_Cone.mjCONE_PYRAMIDAL, _Cone.mjCONE_ELLIPTIC),
}
_NAMED = {each.name.rpartition('_')[2].lower(): each for values in _WEAK_TO_STRONG.values() for each in values}
_GREATER_IS_STRONGER = ('impratio', 'iterations', 'ls_iterations', 'noslip_iterations', 'ccd_iterations')
_SMALLER_IS_STRONGER = ('tolerance', 'ls_tolerance', 'noslip_tolerance', 'ccd_tolerance')
# Flags that change how something is computed, not what: robots may switch these off
_NUMERICAL = (
    _Disable.mjDSBL_WARMSTART
    | _Disable.mjDSBL_FILTERPARENT
    | _Disable.mjDSBL_REFSAFE
    | _Disable.mjDSBL_MIDPHASE
    | _Disable.mjDSBL_EULERDAMP
    | _Disable.mjDSBL_NATIVECCD
    | _Disable.mjDSBL_ISLAND
    | _Disable.mjDSBL_MULTICCD
)
_MORE_CONTACTS = int(_Enable.mjENBL_SPECULATIVE)

_SIZES = [name for name in dir(mujoco.MjSpec) if name.startswith('nuser')] + ['memory', 'nkey']
"""Sizes of user data and memory, and the least number of keyframes."""

_FINGERS = re.compile('finger|gripper|knuckle|jaw', re.IGNORECASE)
FOR_LOOSE_THINGS = ContactCfg(cone='elliptic', impratio=100.0)
FOR_GRIPPERS = FOR_LOOSE_THINGS.update(integrator='discrete')


class RobotAsset(NamedTuple):
    """A robot's name, its asset, and a flag: drives replace the actuators of the asset."""

    name: str
    spec: mujoco.MjSpec
    driven: bool


def set_options(
    spec: mujoco.MjSpec,
    scene: mujoco.MjSpec | None,
    robots: Sequence[RobotAsset],
    objects: Iterable[mujoco.MjSpec],
    timestep: float,
    contact: ContactCfg,
    *,
    loose: bool,
) -> None:
    """Give a composed model the options of its parts and of the config; `timestep` [s].

    `loose`: whether an object moves freely; what does so in the scene is seen here.
    """
    lead = scene or next((robot.spec for robot in robots if not robot.driven), None)
    if lead is None:
        spec.option.integrator = _Integrator.mjINT_IMPLICITFAST
    else:
        spec.option = lead.option
    options = spec.option
    others = [robot for robot in robots if robot.spec is not lead]
    for robot in others:
        _strengthen(options, robot.spec.option)
    agreed = int(_NUMERICAL) if others else 0
    for robot in others:
        agreed &= robot.spec.option.disableflags
        options.enableflags |= robot.spec.option.enableflags & _MORE_CONTACTS
    options.disableflags |= agreed
    assets = [part for part in (scene, *(robot.spec for robot in robots)) if part is not None]
    damped = any(robot.driven for robot in robots) or any(_is_damped(asset) for asset in assets)
    if damped and options.integrator == _Integrator.mjINT_EULER:
        options.integrator = _Integrator.mjINT_IMPLICITFAST
    joints = scene.joints if scene is not None else ()
    loose = loose or any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in joints)
    needed = FOR_LOOSE_THINGS if loose else ContactCfg()
    if any(_FINGERS.search(joint.name) for robot in robots for joint in robot.spec.joints):
        needed = FOR_GRIPPERS
    if any(bounces(asset) for asset in (*assets, *objects)):
        needed = needed.update(integrator=None)
    requested = mujoco.MjSpec().option
    _apply(requested, needed)
    _strengthen(options, requested)
    _apply(options, contact)
    options.timestep = timestep
    for robot in others:
        _warn_of_lost_options(robot, options)


def adopt_settings(child: mujoco.MjSpec, spec: mujoco.MjSpec) -> None:
    """Give a part the settings of the model that it is attached to: MuJoCo warns of others, and drops them."""
    child.option, child.visual, child.stat = spec.option, spec.visual, spec.stat
    for name in _SIZES:
        setattr(child, name, getattr(spec, name))


def _strengthen(options: Any, other: Any) -> None:
    """Replace values that are weaker than those of another asset."""
    default = mujoco.MjSpec().option
    for name in (*_WEAK_TO_STRONG, *_GREATER_IS_STRONGER, *_SMALLER_IS_STRONGER):
        value = getattr(other, name)
        if value != getattr(default, name) and _strength(name, value) > _strength(name, getattr(options, name)):
            setattr(options, name, value)


def _strength(name: str, value: Any) -> float:
    """Return a number that orders the values of an option."""
    if name in _WEAK_TO_STRONG:
        return _WEAK_TO_STRONG[name].index(value)
    return value if name in _GREATER_IS_STRONGER else -value


def _is_damped(asset: mujoco.MjSpec) -> bool:
    """Return True if there is damping that only implicit integration handles implicitly."""
    bias, gain = mujoco.mjtBias.mjBIAS_AFFINE, mujoco.mjtGain.mjGAIN_AFFINE
    return any(np.any(tendon.damping) for tendon in asset.tendons) or any(
        (actuator.biastype == bias and actuator.biasprm[2] != 0)
        or (actuator.gaintype == gain and actuator.gainprm[2] != 0)
        for actuator in asset.actuators
    )


def _apply(options: Any, contact: ContactCfg) -> None:
    """Write the settings of a config."""
    for name, value in contact:
        if value is not None:
            setattr(options, name, _NAMED.get(str(value).lower(), value))


def _warn_of_lost_options(robot: RobotAsset, options: Any) -> None:
    """Log options of the asset of a robot that the composed model does not have."""
    own, default = robot.spec.option, mujoco.MjSpec().option
    lost = []
    for name in _names(own):
        value, result = getattr(own, name), getattr(options, name)
        if name in ('disableflags', 'enableflags'):
            kind = _Disable if name == 'disableflags' else _Enable
            missing = [flag for flag, bit in kind.__members__.items() if '_' in flag and value & bit & ~result]
            lost += [f'{name[:-5]} {flag.rpartition("_")[2].lower()}' for flag in missing]
        elif not np.array_equal(value, getattr(default, name)) and not np.array_equal(value, result):
            lost.append(f'{name} {_text(name, value)} (it is {_text(name, result)})')
    if lost:
        warn_once('robot %r: options of its model that are ignored in this scene: %s', robot.name, ', '.join(lost))


def _names(options: Any) -> Iterable[str]:
    return [name for name in dir(options) if not name.startswith('_') and name != 'timestep']


def _text(name: str, value: Any) -> str:
    if name in _WEAK_TO_STRONG:
        kind = type(_WEAK_TO_STRONG[name][0])
        return kind(value).name.rpartition('_')[2].lower()
    return ' '.join(f'{number:g}' for number in np.ravel(value))
