"""Drives of PhysX's joints, from the actuators and springs of a model.

PhysX drives a joint with `K (target - q) + D (velocity target - v)`, integrated implicitly and clamped by the greatest
effort. All actuators on a joint that give `gain * ctrl + bias_0 + bias_1 q + bias_2 v` are one such drive, and so are
the three (position, velocity, effort) of a robot's drives: what does not depend on the state becomes its target.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from internutopia.engines.physx.bodies import Floats

_UNLIMITED = 1e30
_JOINT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_MOVABLE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


@dataclass(frozen=True)
class Gains:
    """Gains of n slots: of dofs `(n, nv)`, and of actuators `(n, nu)` where they do not depend on the state.

    Attributes:
        stiffness, damping: of actuators alone.
        spring: stiffness of joint springs.
        scale, offset: effort of an actuator is `scale * ctrl + offset`, but for stiffness and damping.
    """

    stiffness: Floats
    damping: Floats
    spring: Floats
    scale: Floats
    offset: Floats


class Drives:
    """Drives of a model. NotImplementedError for actuators that are none."""

    def __init__(self, model: mujoco.MjModel):
        self._model = model
        for actuator in range(model.nu):
            _check(model, actuator)
        self._dof = model.jnt_dofadr[model.actuator_trnid[:, 0]] if model.nu else np.zeros(0, np.intp)
        own = [np.flatnonzero(self._dof == dof) for dof in range(model.nv)]
        most = max((len(actuators) for actuators in own), default=0)
        # actuators of each dof, column by column; the last one, of no effort, where there are fewer
        self._columns = np.full((most, model.nv), model.nu, np.intp)
        for dof, actuators in enumerate(own):
            self._columns[: len(actuators), dof] = actuators
        self._gear = model.actuator_gear[:, 0] if model.nu else np.zeros(0)
        joint = model.dof_jntid
        single = np.isin(model.jnt_type[joint], _MOVABLE)
        self._reference = np.where(single, model.qpos0[model.jnt_qposadr[joint]], 0.0)
        self._rest = np.where(single, model.qpos_spring[model.jnt_qposadr[joint]], 0.0)
        self._position = model.jnt_qposadr[joint]
        self.single = single
        self.limits = self._limits()

    def gains(self, gainprm: Floats, biasprm: Floats, spring: Floats) -> Gains:
        """Return the gains of slots, from their fields `actuator_gainprm`, `actuator_biasprm` and `jnt_stiffness`."""
        square = self._gear**2
        return Gains(
            self._sum(-biasprm[..., 1] * square),
            self._sum(-biasprm[..., 2] * square),
            np.where(self.single, spring[:, self._model.dof_jntid], 0.0),
            gainprm[..., 0] * self._gear,
            biasprm[..., 0] * self._gear,
        )

    def efforts(self, gains: Gains, controls: Floats) -> Floats:
        """Return the part of the actuators' efforts that does not depend on the state, `(n, nv)`."""
        model = self._model
        if model.nu and model.actuator_ctrllimited.any():
            low, high = model.actuator_ctrlrange.T
            limited = model.actuator_ctrllimited.astype(bool)
            controls = np.where(limited, np.clip(controls, low, high), controls)
        return self._sum(gains.scale * controls + gains.offset)

    def targets(self, gains: Gains, efforts: Floats) -> tuple[Floats, Floats, Floats]:
        """Return position targets, velocity targets and efforts of the dofs for PhysX, `(n, nv)` each."""
        stiffness = gains.stiffness + gains.spring
        load = efforts + gains.spring * self._rest - stiffness * self._reference
        held = stiffness > 0
        damped = ~held & (gains.damping > 0)
        position = np.where(held, load / np.where(held, stiffness, 1.0), 0.0)
        velocity = np.where(damped, load / np.where(damped, gains.damping, 1.0), 0.0)
        return position, velocity, np.where(held | damped, 0.0, np.clip(load, -self.limits, self.limits))

    def applied(self, gains: Gains, efforts: Floats, qpos: Floats, qvel: Floats) -> Floats:
        """Return the efforts of actuators in a state, clamped, `(n, nv)`."""
        forces = efforts - np.where(self.single, gains.stiffness * qpos[:, self._position], 0.0) - gains.damping * qvel
        return np.clip(forces, -self.limits, self.limits)

    def _sum(self, values: Floats) -> Floats:
        """Return the sums over the actuators of each dof, `(n, nv)`."""
        padded = np.concatenate([values, np.zeros((len(values), 1))], axis=1)
        total = np.zeros((len(values), self._model.nv))
        for column in self._columns:
            total += padded[:, column]
        return total

    def _limits(self) -> Floats:
        """Return the greatest effort on each dof."""
        model = self._model
        limits = np.full(model.nv, _UNLIMITED)
        joint = model.dof_jntid
        limited = model.jnt_actfrclimited[joint].astype(bool)
        limits[limited] = np.abs(model.jnt_actfrcrange[joint][limited]).max(axis=1)
        for dof in range(model.nv):
            own = np.flatnonzero(self._dof == dof)
            if len(own) and model.actuator_forcelimited[own].all():
                most = (np.abs(model.actuator_forcerange[own]).max(axis=1) * np.abs(self._gear[own])).sum()
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
