"""Probes: measurements of sensors on a robot (`RobotSpec.probes`), as MuJoCo sensors of the composed model.

The engine computes what a probe needs only in models that have one: a robot without probes pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.model.compose import object_body, robot_prefix
from internutopia.model.drives import DRIVEN_JOINTS
from internutopia.model.groups import FRAME_GROUP
from internutopia.model.spec import MOST_CONTACTS, SCENE_PREFIX, Probe, RobotSpec
from internutopia.util import did_you_mean

_SENSORS = mujoco.mjtSensor
_OBJECTS = mujoco.mjtObj
_IN_A_FRAME = {
    'acceleration': (_SENSORS.mjSENS_ACCELEROMETER,),
    'wrench': (_SENSORS.mjSENS_FORCE, _SENSORS.mjSENS_TORQUE),
    'frame': (),
}
# what is extracted of a contact, in the engine's order; how contacts are reduced (3: their net force); values kept
_NET_CONTACT = 1 << int(mujoco.mjtConDataField.mjCONDATA_FOUND) | 1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE), 3, 1
# points and normals of single contacts, those with the largest forces (2)
_SINGLE_CONTACTS = (
    1 << int(mujoco.mjtConDataField.mjCONDATA_POS) | 1 << int(mujoco.mjtConDataField.mjCONDATA_NORMAL),
    2,
    MOST_CONTACTS,
)


def match_name(target: str, names: Sequence[str]) -> str | None:
    """Return the name that a target means: its own, or that at the end of its path; the first one for `''`."""
    if not target:
        return next(iter(names), None)
    return next((name for name in (target, target.rsplit('/', 1)[-1]) if name in names), None)


def add_probes(spec: mujoco.MjSpec, robots: Iterable[RobotSpec]) -> None:
    """Add the sensors for the probes of these robots to the composed spec. ValueError for a missing target."""
    add = {'contact': _add_contact, 'effort': _add_efforts, 'contacts': _add_contacts}
    for robot in robots:
        for index, probe in enumerate(dict.fromkeys(robot.probes)):
            add.get(probe.kind, _add_site)(spec, robot, probe, _name(robot, index))


def probe_addresses(model: mujoco.MjModel, robot: RobotSpec) -> Mapping[Probe, NDArray[np.intp]]:
    """Return addresses in `sensordata` of each probe of a robot; none for a mere frame."""
    addresses: dict[Probe, NDArray[np.intp]] = {}
    for index, probe in enumerate(dict.fromkeys(robot.probes)):
        prefix = f'{_name(robot, index)}/'
        sensors = [i for i in range(model.nsensor) if model.sensor(i).name.startswith(prefix)]
        addresses[probe] = np.concatenate(
            [np.zeros(0, np.intp), *(model.sensor_adr[i] + np.arange(model.sensor_dim[i]) for i in sensors)]
        ).astype(np.intp)
    return addresses


def _name(robot: RobotSpec, index: int) -> str:
    return f'{robot_prefix(robot.name)}probes/{index}'


def _add_site(spec: mujoco.MjSpec, robot: RobotSpec, probe: Probe, name: str) -> None:
    """Add a frame on a link, and its sensors."""
    joint = match_name(probe.target, _joints(spec, robot)) if probe.kind == 'wrench' and probe.target else None
    if joint is not None:
        holder = spec.joint(robot_prefix(robot.name) + joint)
        body, offset = holder.parent, holder.pos
    else:
        body, offset = spec.body(_link(spec, robot, probe)), np.zeros(3)
    body.add_site(name=name, pos=offset + probe.position, quat=probe.orientation, group=FRAME_GROUP)
    for k, kind in enumerate(_IN_A_FRAME[probe.kind]):
        spec.add_sensor(name=f'{name}/{k}', type=kind, objtype=_OBJECTS.mjOBJ_SITE, objname=name)


def _add_efforts(spec: mujoco.MjSpec, robot: RobotSpec, probe: Probe, name: str) -> None:
    joints = _joints(spec, robot)
    if probe.target:
        joint = match_name(probe.target, joints)
        if joint is None:
            raise _unknown(robot, probe, 'joint', joints)
        joints = [joint]
    for k, joint in enumerate(joints):
        sensor = spec.add_sensor(name=f'{name}/{k}', type=_SENSORS.mjSENS_JOINTACTFRC)
        sensor.objtype, sensor.objname = _OBJECTS.mjOBJ_JOINT, robot_prefix(robot.name) + joint


def _add_contact(spec: mujoco.MjSpec, robot: RobotSpec, probe: Probe, name: str) -> None:
    sensor = spec.add_sensor(name=f'{name}/0', type=_SENSORS.mjSENS_CONTACT)
    sensor.objtype, sensor.objname = _touchable(spec, robot, probe, probe.target)
    if probe.against is not None:
        sensor.reftype, sensor.refname = _touchable(spec, robot, probe, probe.against)
    sensor.intprm[:3] = _NET_CONTACT


def _add_contacts(spec: mujoco.MjSpec, robot: RobotSpec, probe: Probe, name: str) -> None:
    sensor = spec.add_sensor(name=f'{name}/0', type=_SENSORS.mjSENS_CONTACT)
    sensor.objtype, sensor.objname = _OBJECTS.mjOBJ_XBODY, _link(spec, robot, probe)
    sensor.intprm[:3] = _SINGLE_CONTACTS


def _touchable(spec: mujoco.MjSpec, robot: RobotSpec, probe: Probe, target: str) -> tuple[mujoco.mjtObj, str]:
    """Return a link by its name, else an object or movable scene body with all bodies joined to it."""
    links = _links(spec, robot)
    link = match_name(target, links)
    if link is not None:
        return _OBJECTS.mjOBJ_BODY, robot_prefix(robot.name) + link
    objects = {
        body.name.removeprefix(prefix).lstrip('/'): body.name
        for prefix in (object_body(''), SCENE_PREFIX)
        for body in spec.worldbody.bodies
        if body.name.startswith(prefix)
    }
    name = match_name(target, list(objects)) if target else None
    if name is None:
        raise _unknown(robot, probe, 'link or object', [*links, *objects], target)
    return _OBJECTS.mjOBJ_XBODY, objects[name]


def _links(spec: mujoco.MjSpec, robot: RobotSpec) -> list[str]:
    """Return names of the links, the root first."""
    prefix = robot_prefix(robot.name)
    return [body.name.removeprefix(prefix) for body in spec.bodies if body.name.startswith(prefix)]


def _joints(spec: mujoco.MjSpec, robot: RobotSpec) -> list[str]:
    """Return names of the joints with one degree of freedom, in joint order."""
    prefix = robot_prefix(robot.name)
    return [
        joint.name.removeprefix(prefix)
        for joint in spec.joints
        if joint.name.startswith(prefix) and joint.type in DRIVEN_JOINTS
    ]


def _link(spec: mujoco.MjSpec, robot: RobotSpec, probe: Probe) -> str:
    links = _links(spec, robot)
    link = match_name(probe.target, links)
    if link is None:
        wrench = probe.kind == 'wrench'
        choices = [*links, *_joints(spec, robot)] if wrench else links
        raise _unknown(robot, probe, 'link or joint' if wrench else 'link', choices)
    return robot_prefix(robot.name) + link


def _unknown(
    robot: RobotSpec, probe: Probe, what: str, choices: Iterable[str], target: str | None = None
) -> ValueError:
    target = target or probe.target
    hint = did_you_mean(target.rsplit('/', 1)[-1], choices)
    return ValueError(f'robot {robot.name!r}, sensor {probe.sensor!r}: there is no {what} {target!r}; {hint}')
