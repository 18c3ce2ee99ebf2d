"""Forces in joints: those that the parent exerts on a link, from PhysX's joint frames in those of MuJoCo's sensors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.physx.bodies import FORCE_SENSORS, Floats, Movers
from internutopia.engines.physx.prims import joint_turn
from internutopia.util.arrays import ArrayMaker
from internutopia.util.rotations import cross, quat_rotate, quat_rotate_inverse

_TORQUE = FORCE_SENSORS[1]
_UNTURNED = np.array([1.0, 0.0, 0.0, 0.0])


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
