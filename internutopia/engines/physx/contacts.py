"""Contact sensors of a model on PhysX: the colliders whose forces they sum up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.intp]

_FOUND, _FORCE = (
    1 << int(bit) for bit in (mujoco.mjtConDataField.mjCONDATA_FOUND, mujoco.mjtConDataField.mjCONDATA_FORCE)
)
_SUBTREE = int(mujoco.mjtObj.mjOBJ_XBODY)
_CONTACT = int(mujoco.mjtSensor.mjSENS_CONTACT)
_NET, _STRONGEST = 3, 2  # how contacts are reduced: to their net force, or to those with the largest forces
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
