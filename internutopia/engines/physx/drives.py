"""Drives of PhysX's joints, from the actuators and springs of a model.

PhysX drives a joint with `K (target - q) + D (velocity target - v)`, integrated implicitly and clamped by the greatest
effort. All actuators on a joint that give `gain * ctrl + bias_0 + bias_1 q + bias_2 v` are one such drive, and so are
the three (position, velocity, effort) of a robot's drives: what does not depend on the state becomes its target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.physx.prims import BALL
from internutopia.util.arrays import ArrayMaker, HostArrays

Floats = Any  # arrays of the kind that the world has
_UNLIMITED = 1e30
_JOINT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_MOVABLE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


@dataclass(frozen=True)
class Gains:
    """Gains of n slots: of dofs `(n, nv)`, and of actuators `(n, nu)` where they do not depend on the state.

    Attributes:
        stiffness, damping: of actuators alone.
        spring: stiffness of joint springs.
        scale, offset: effort of an actuator is `scale * ctrl + offset`, except for stiffness and damping.
    """

    stiffness: Floats
    damping: Floats
    spring: Floats
    scale: Floats
    offset: Floats


class Drives:
    """Drives of a model, for arrays of some kind. NotImplementedError for actuators that are none."""

    def __init__(self, model: mujoco.MjModel, arrays: ArrayMaker | None = None):
        self._model = model
        self._arrays = arrays = arrays or HostArrays()
        for actuator in range(model.nu):
            _check(model, actuator)
        driven = model.jnt_dofadr[model.actuator_trnid[:, 0]] if model.nu else np.zeros(0, np.intp)
        own = [np.flatnonzero(driven == dof) for dof in range(model.nv)]
        most = max((len(actuators) for actuators in own), default=0)
        # actuators of each dof, column by column; the last one, of no effort, where there are fewer
        columns = np.full((most, model.nv), model.nu, np.intp)
        for dof, actuators in enumerate(own):
            columns[: len(actuators), dof] = actuators
        self._columns = [arrays.index(column) for column in columns]
        joint = model.dof_jntid
        single = np.isin(model.jnt_type[joint], _MOVABLE)
        limited = model.actuator_ctrllimited.astype(bool)
        low, high = np.where(limited[:, None], model.actuator_ctrlrange, [-np.inf, np.inf]).T
        position = model.jnt_qposadr[joint]

        def numbers(values: Any) -> Any:
            return arrays.asarray(values, arrays.double)

        self._gear = numbers(model.actuator_gear[:, 0])
        self._low, self._high = numbers(low), numbers(high)
        self._reference = numbers(np.where(single, model.qpos0[position], 0.0))
        self._rest = numbers(np.where(single, model.qpos_spring[position], 0.0))
        self._position, self._joint = arrays.index(position), arrays.index(joint)
        self._single = numbers(single)
        self._sprung = numbers(np.isin(model.jnt_type[joint], (*_MOVABLE, BALL)))
        self._limits = numbers(_limits(model, own))

    def gains(self, values: Callable[[str], Floats]) -> Gains:
        """Return the gains of slots, from fields of their models, `(n, ...)` each, by name."""
        square, gain, bias = self._gear**2, values('actuator_gainprm'), values('actuator_biasprm')
        return Gains(
            self._sum(-bias[..., 1] * square),
            self._sum(-bias[..., 2] * square),
            self._sprung * values('jnt_stiffness')[:, self._joint],
            gain[..., 0] * self._gear,
            bias[..., 0] * self._gear,
        )

    def properties(self, gains: Gains, values: Callable[[str], Floats]) -> dict[str, Floats]:
        """Return properties of dofs for PhysX, `(n, nv)` or `(n, nv, 3)` each, from gains and fields of models."""
        xp, dry = self._arrays.xp, values('dof_frictionloss')
        return {
            'STIFFNESS': gains.stiffness + gains.spring,
            'DAMPING': gains.damping,
            'MAX_FORCE': xp.broadcast_to(self._limits, gains.damping.shape),
            'ARMATURE': values('dof_armature'),
            'FRICTION_PROPERTIES': xp.stack([dry, dry, values('dof_damping')], axis=-1),
        }

    def efforts(self, gains: Gains, controls: Floats) -> Floats:
        """Return the part of the actuators' efforts that does not depend on the state, `(n, nv)`."""
        controls = self._arrays.xp.clip(controls, self._low, self._high)
        return self._sum(gains.scale * controls + gains.offset)

    def targets(self, gains: Gains, efforts: Floats) -> dict[str, Floats]:
        """Return position targets, velocity targets and efforts of the dofs for PhysX, `(n, nv)` each."""
        where, clip = self._arrays.xp.where, self._arrays.xp.clip
        stiffness = gains.stiffness + gains.spring
        load = efforts + gains.spring * self._rest - stiffness * self._reference
        held = stiffness > 0
        damped = ~held & (gains.damping > 0)
        return {
            'POSITION_TARGET': where(held, load / where(held, stiffness, 1.0), 0.0),
            'VELOCITY_TARGET': where(damped, load / where(damped, gains.damping, 1.0), 0.0),
            'ACTUATION_FORCE': where(held | damped, 0.0, clip(load, -self._limits, self._limits)),
        }

    def applied(self, gains: Gains, efforts: Floats, qpos: Floats, qvel: Floats) -> Floats:
        """Return the efforts of actuators in a state, clamped, `(n, nv)`."""
        forces = efforts - self._single * gains.stiffness * qpos[:, self._position] - gains.damping * qvel
        return self._arrays.xp.clip(forces, -self._limits, self._limits)

    def _sum(self, values: Floats) -> Floats:
        """Return the sums over the actuators of each dof, `(n, nv)`."""
        arrays, count = self._arrays, len(values)
        padded = arrays.xp.concat([values, arrays.zeros((count, 1), arrays.double)], axis=1)
        total = arrays.zeros((count, self._model.nv), arrays.double)
        for column in self._columns:
            total += padded[:, column]
        return total


def _limits(model: mujoco.MjModel, actuators: Sequence[NDArray[np.intp]]) -> NDArray[np.float64]:
    """Return the greatest effort on each dof, from the actuators of each."""
    limits = np.full(model.nv, _UNLIMITED)
    joint = model.dof_jntid
    limited = model.jnt_actfrclimited[joint].astype(bool)
    limits[limited] = np.abs(model.jnt_actfrcrange[joint][limited]).max(axis=1)
    for dof, own in enumerate(actuators):
        if len(own) and model.actuator_forcelimited[own].all():
            most = (np.abs(model.actuator_forcerange[own]).max(axis=1) * np.abs(model.actuator_gear[own, 0])).sum()
            limits[dof] = min(limits[dof], most)
    return limits


def _check(model: mujoco.MjModel, actuator: int) -> None:
    name = model.actuator(actuator).name or actuator
    on_joint = model.actuator_trntype[actuator] in _JOINT
    if not on_joint or model.jnt_type[model.actuator_trnid[actuator, 0]] not in _MOVABLE:
        raise NotImplementedError(f"backend 'physx': actuator {name!r} does not drive one hinge or slide")
    linear = (
        model.actuator_dyntype[actuator] == int(mujoco.mjtDyn.mjDYN_NONE)
        and model.actuator_gaintype[actuator] == int(mujoco.mjtGain.mjGAIN_FIXED)
        and model.actuator_biastype[actuator] in (int(mujoco.mjtBias.mjBIAS_NONE), int(mujoco.mjtBias.mjBIAS_AFFINE))
    )
    if not linear:
        raise NotImplementedError(f"backend 'physx': actuator {name!r} is no motor, position or velocity actuator")
