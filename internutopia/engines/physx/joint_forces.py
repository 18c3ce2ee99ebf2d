"""Forces in joints: those that the parent exerts on a link, from PhysX's joint frames in those of MuJoCo's sensors."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from internutopia.engines.physx.bodies import Floats, Movers
from internutopia.engines.physx.stage import joint_turn
from internutopia.util.rotations import cross, quat_rotate, quat_rotate_inverse

_FORCE, _TORQUE = int(mujoco.mjtSensor.mjSENS_FORCE), int(mujoco.mjtSensor.mjSENS_TORQUE)


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

    def values(self, incoming: Floats) -> Floats:
        """Return what it measures, `(n, 3)`, from forces and torques in the joint's frame, `(n, 6)`."""
        force = quat_rotate(self.turn, incoming[:, :3].astype(np.float64))
        if not self.torque:
            return quat_rotate_inverse(self.frame, force)
        torque = quat_rotate(self.turn, incoming[:, 3:].astype(np.float64))
        return quat_rotate_inverse(self.frame, torque + cross(np.broadcast_to(self.arm, force.shape), force))


def joint_force_sensors(movers: Movers) -> list[JointForceSensor]:
    """Return the force and torque sensors of a model that are on links with a joint."""
    model, found = movers.model, list[JointForceSensor]()
    for sensor in np.flatnonzero(np.isin(model.sensor_type, (_FORCE, _TORQUE))).tolist():
        site = int(model.sensor_objid[sensor])
        link = int(model.site_bodyid[site])
        if not has_joint(movers, link):
            continue
        joint = movers.joints(link)[-1]
        found.append(
            JointForceSensor(
                address=int(model.sensor_adr[sensor]),
                link=link,
                torque=bool(model.sensor_type[sensor] == _TORQUE),
                turn=joint_turn(model.jnt_axis[joint]),
                arm=model.jnt_pos[joint] - model.site_pos[site],
                frame=model.site_quat[site].copy(),
            )
        )
    return found


def has_joint(movers: Movers, body: int) -> bool:
    """Return True if hinges or slides of its own hold a body."""
    return movers.of[body] == body and any(body in tree.links for tree in movers.articulations)
