"""Steering: conversion of a person's input to commands of a robot.

A twist moves one part of the robot at a time: its base, by speeds, or the target of an arm, which stays where it was
moved to. Forward is where the robot's root faces.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from internutopia.teleoperation.device import Twist
from internutopia.util.rotations import quat_conjugate, quat_multiply, quat_rotate, unit_quat
from internutopia.viewer.frames import ArmPose
from internutopia.viewer.robot_controls import RobotCommand, RobotControls

BASE = 'base'
_ARM_SPEED = 0.25  # m/s, at most
_ARM_TURN_SPEED = 1.0  # rad/s, at most
_LEAD = (
    0.1  # m: how far a target may be from its end effector, so that it does not run away from an arm that cannot follow
)


class Steering:
    """Steering of one robot.

    Args:
        controls: controls of the robot.

    Attributes:
        parts: its movable parts: `'base'`, and arms by name.
        part: the part that moves.
    """

    def __init__(self, controls: RobotControls):
        self.controls = controls
        self.parts = ([BASE] if controls.velocity is not None else []) + list(controls.arms)
        self.part = self.parts[0] if self.parts else BASE
        self._poses: dict[str, NDArray[np.float64]] = {}
        self._closed = False

    def begin(self, arms: Mapping[str, ArmPose]) -> None:
        """Begin an episode: open the grippers and hold the arms at their poses.

        Arms of a robot that walks or drives are left to its locomotion until they are moved.
        """
        self._closed = False
        held = () if self.controls.velocity is not None else arms
        self._poses = {name: _as_row(arms[name]) for name in held}

    def adopt(self, command: RobotCommand) -> None:
        """Continue from a command that another source gave the robot."""
        self._poses |= {name: np.array(pose) for name, pose in command.poses.items()}
        self._closed = any(command.closed.values()) if command.closed else self._closed

    def next_part(self) -> None:
        """Select the next part to move."""
        if self.parts:
            self.part = self.parts[(self.parts.index(self.part) + 1) % len(self.parts)]

    def toggle_gripper(self) -> None:
        """Close the grippers, or open them."""
        self._closed = not self._closed

    def command(
        self, twist: Twist, dt: float, arms: Mapping[str, ArmPose], heading: NDArray[np.float64]
    ) -> RobotCommand:
        """Return the command to the robot.

        Args:
            twist: input of the person.
            dt: duration of the command [s].
            arms: poses of the arms.
            heading: yaw of the robot's root in the env frame, as an orientation `(4,)`.
        """
        if self.part in arms and twist.any():
            self._move(self.part, twist, dt, arms[self.part], heading)
        speeds = self._speeds(twist) if self.part == BASE else None
        poses = {name: tuple(pose.tolist()) for name, pose in self._poses.items()}
        return RobotCommand(speeds, None, poses, dict.fromkeys(self.controls.grippers, self._closed))

    def _speeds(self, twist: Twist) -> tuple[float, ...] | None:
        velocity = self.controls.velocity
        if velocity is None:
            return None
        forward, lateral, yaw_rate = twist[[0, 1, 5]]
        if len(velocity.labels) == 2:  # what cannot go sideways turns
            speeds = [forward, np.clip(lateral + yaw_rate, -1.0, 1.0)]
        else:
            speeds = [forward, lateral, yaw_rate]
        limits = zip(speeds, velocity.low, velocity.high, strict=True)
        return tuple(float(part * high if part > 0.0 else -part * low) for part, low, high in limits)

    def _move(self, name: str, twist: Twist, dt: float, arm: ArmPose, heading: NDArray[np.float64]) -> None:
        """Move the target of an arm."""
        position, orientation = arm.end_effector
        pose = self._poses.setdefault(name, _as_row(arm))
        axes = quat_multiply(quat_conjugate(arm.frame[1]), heading)  # of the twist, in the frame of the targets
        way = pose[:3] + _ARM_SPEED * dt * quat_rotate(axes, twist[:3]) - position
        distance = float(np.linalg.norm(way))
        pose[:3] = position + way * min(1.0, _LEAD / max(distance, _LEAD))
        turn = 0.5 * _ARM_TURN_SPEED * dt * quat_rotate(axes, twist[3:])
        pose[3:] = unit_quat(quat_multiply(np.concatenate([[1.0], turn]), pose[3:]))  # small: sin is the angle


def _as_row(arm: ArmPose) -> NDArray[np.float64]:
    """Return position and orientation of the end effector as one array `(7,)`."""
    return np.concatenate(arm.end_effector, dtype=np.float64)
