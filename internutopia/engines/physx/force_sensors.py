"""Force sensors of a model on PhysX: of contacts, by the colliders whose forces they sum up, and of forces in joints.

The latter are those that the parent exerts on a link, from PhysX's joint frames in those of MuJoCo's sensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.physx.bodies import FORCE_SENSORS, Floats, Movers
from internutopia.engines.physx.prims import joint_turn
from internutopia.util.arrays import ArrayMaker
from internutopia.util.rotations import cross, quat_rotate, quat_rotate_inverse

Ints = NDArray[np.intp]

_FOUND, _FORCE = (
    1 << int(bit) for bit in (mujoco.mjtConDataField.mjCONDATA_FOUND, mujoco.mjtConDataField.mjCONDATA_FORCE)
)
_SUBTREE = int(mujoco.mjtObj.mjOBJ_XBODY)
_CONTACT = int(mujoco.mjtSensor.mjSENS_CONTACT)
_NET, _STRONGEST = 3, 2  # how contacts are reduced: to their net force, or to those with the largest forces
_TORQUE = FORCE_SENSORS[1]
_UNTURNED = np.array([1.0, 0.0, 0.0, 0.0])
_POINTS = sum(1 << int(bit) for bit in (mujoco.mjtConDataField.mjCONDATA_POS, mujoco.mjtConDataField.mjCONDATA_NORMAL))


@dataclass(frozen=True)
class ContactSensor:
    """A sensor of the net force on some colliders.

    Attributes:
        address: of the force in `sensordata`; before it is the number of contacts, if `counts`.
        counts: True if it says whether there is contact.
        paths: of the colliders.
        against: paths of the colliders with which contacts count; empty for all.
    """

    address: int
    counts: bool
    paths: tuple[str, ...]
    against: tuple[str, ...] = ()


def contact_sensors(model: mujoco.MjModel, colliders: dict[int, str]) -> list[ContactSensor]:
    """Return the contact sensors of a model whose colliders are at some paths, by geom."""
    found: list[ContactSensor] = []
    for sensor in np.flatnonzero(model.sensor_type == _CONTACT).tolist():
        data, reduction = model.sensor_intprm[sensor, :2].tolist()
        if reduction != _NET or data & ~(_FOUND | _FORCE):
            continue
        counts = bool(data & _FOUND)
        own = _paths(model, colliders, int(model.sensor_objtype[sensor]), int(model.sensor_objid[sensor]))
        other = int(model.sensor_refid[sensor])
        against = () if other < 0 else _paths(model, colliders, int(model.sensor_reftype[sensor]), other)
        if own and (other < 0 or against):
            found.append(ContactSensor(int(model.sensor_adr[sensor]) + counts, counts, own, against))
    return found


def point_sensors(model: mujoco.MjModel, colliders: dict[int, str]) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return the sensors of point and normal of single contacts of a model whose colliders are at some paths, by geom.

    Of each its address in `sensordata`, the number of contacts, the strongest ones, and the paths of its colliders.
    """
    found: list[tuple[int, int, tuple[str, ...]]] = []
    for sensor in np.flatnonzero(model.sensor_type == _CONTACT).tolist():
        data, reduction, most = model.sensor_intprm[sensor, :3].tolist()
        paths = _paths(model, colliders, int(model.sensor_objtype[sensor]), int(model.sensor_objid[sensor]))
        if reduction == _STRONGEST and data == _POINTS and model.sensor_refid[sensor] < 0 and paths:
            found.append((int(model.sensor_adr[sensor]), most, paths))
    return found


def _paths(model: mujoco.MjModel, colliders: dict[int, str], kind: int, body: int) -> tuple[str, ...]:
    bodies = _subtree(model, body) if kind == _SUBTREE else [body]
    return tuple(path for geom, path in colliders.items() if model.geom_bodyid[geom] in bodies)


def _subtree(model: mujoco.MjModel, top: int) -> Sequence[int]:
    inside = np.zeros(model.nbody, bool)
    inside[top] = True
    for body in range(top + 1, model.nbody):
        inside[body] = inside[model.body_parentid[body]]
    return np.flatnonzero(inside).tolist()


def sensed_bodies(model: mujoco.MjModel) -> set[int]:
    """Return the bodies on which contact sensors measure."""
    found: set[int] = set()
    for sensor in np.flatnonzero(model.sensor_type == _CONTACT).tolist():
        body = int(model.sensor_objid[sensor])
        found |= set(_subtree(model, body)) if model.sensor_objtype[sensor] == _SUBTREE else {body}
    return found


@dataclass(frozen=True)
class JointForceSensor:
    """A force or torque sensor at the joint of a link.

    Attributes:
        address: in `sensordata`.
        link: the body.
        torque: True if it measures the torque.
        turn: orientation of PhysX's joint frame on the link.
        arm: from the sensor's frame to the joint, axes of the link [m].
        frame: orientation of the sensor's frame on the link.
    """

    address: int
    link: int
    torque: bool
    turn: Floats
    arm: Floats
    frame: Floats

    @property
    def columns(self) -> NDArray[np.intp]:
        """Its columns of `sensordata`."""
        return self.address + np.arange(3)

    def on(self, arrays: ArrayMaker) -> JointForceSensor:
        """Return the sensor for forces in such arrays."""
        frames = {name: arrays.asarray(getattr(self, name), arrays.double) for name in ('turn', 'arm', 'frame')}
        return replace(self, **frames)

    def values(self, incoming: Floats) -> Floats:
        """Return what it measures, `(n, 3)`, from forces and torques in the joint's frame, `(n, 6)`."""
        force = quat_rotate(self.turn, incoming[:, :3])
        if not self.torque:
            return quat_rotate_inverse(self.frame, force)
        torque = quat_rotate(self.turn, incoming[:, 3:])
        return quat_rotate_inverse(self.frame, torque + cross(self.arm + 0 * force, force))


def joint_force_sensors(movers: Movers) -> list[JointForceSensor]:
    """Return the force and torque sensors of a model that are on links of articulations."""
    model, found = movers.model, list[JointForceSensor]()
    for sensor in np.flatnonzero(np.isin(model.sensor_type, FORCE_SENSORS)).tolist():
        site = int(model.sensor_objid[sensor])
        link = int(model.site_bodyid[site])
        if not is_link(movers, link):
            continue
        joints = movers.joints(link)
        joint = joints[-1] if joints else None
        found.append(
            JointForceSensor(
                address=int(model.sensor_adr[sensor]),
                link=link,
                torque=bool(model.sensor_type[sensor] == _TORQUE),
                turn=_UNTURNED if joint is None else joint_turn(model, joint),
                arm=(0.0 if joint is None else model.jnt_pos[joint]) - model.site_pos[site],
                frame=model.site_quat[site].copy(),
            )
        )
    return found


def is_link(movers: Movers, body: int) -> bool:
    """Return True if a joint of PhysX holds a body."""
    return movers.of[body] == body and any(body in tree.links for tree in movers.articulations)
