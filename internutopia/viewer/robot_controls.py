"""Robot controls: commands of a person to a robot's controllers, and the resulting actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from internutopia.core.robot.robot import BaseRobot
from internutopia_extension.controllers.ground_controllers import MoveToPointBySpeedController
from internutopia_extension.controllers.inverse_kinematics_controller import InverseKinematicsController
from internutopia_extension.controllers.joint_controllers import GripperController
from internutopia_extension.controllers.move_along_path_points_controller import MoveAlongPathPointsController
from internutopia_extension.controllers.move_by_speed_controller import MoveBySpeedController
from internutopia_extension.controllers.speed_controllers import DifferentialDriveController

SPEEDS = ('forward [m/s]', 'lateral [m/s]', 'yaw rate [rad/s]')


@dataclass(frozen=True)
class VelocityControl:
    """Controller or command `name` that takes speeds, with a range for each of their labels."""

    name: str
    labels: tuple[str, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class RobotControls:
    """Controls of a robot; names are those of its controllers.

    Attributes:
        robot: its name.
        velocity: control of its speed, if it drives or walks.
        goal: the controller that goes to a point of the ground, if it has one.
        goal_is_path: True if that controller takes a list of points.
        arms: those that bring an end effector to a pose.
        grippers: those that open and close fingers.
    """

    robot: str
    velocity: VelocityControl | None = None
    goal: str | None = None
    goal_is_path: bool = False
    arms: tuple[str, ...] = ()
    grippers: tuple[str, ...] = ()


@dataclass(frozen=True)
class RobotCommand:
    """Command to a robot.

    Attributes:
        speeds: one for each label of its velocity [m/s or rad/s]; None for standing still.
        goal: point of the ground `(3,)` [m], env frame, to go to; it counts instead of speeds.
        poses: by arm, position [m] and orientation (w, x, y, z) `(7,)` in the frame of the arm's targets.
        closed: by gripper, True to close it.
    """

    speeds: tuple[float, ...] | None = None
    goal: tuple[float, ...] | None = None
    poses: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    closed: Mapping[str, bool] = field(default_factory=dict)

    def actions(self, controls: RobotControls) -> dict[str, Any]:
        """Return the robot's action for the list API, by controller; a robot that can walk always gets a velocity."""
        actions: dict[str, Any] = {}
        if self.goal is not None and controls.goal is not None:
            actions[controls.goal] = [[self.goal]] if controls.goal_is_path else [self.goal]
        elif controls.velocity is not None:
            actions[controls.velocity.name] = list(self.speeds or (0.0,) * len(controls.velocity.labels))
        for name, pose in self.poses.items():
            if name in controls.arms:
                actions[name] = np.array(pose, np.float32)
        for name, closed in self.closed.items():
            if name in controls.grippers:
                actions[name] = [-1.0 if closed else 1.0]
        return actions


def controls_of(name: str, robot: BaseRobot) -> RobotControls:
    """Return the controls of a robot of the list API; of several controllers for speeds, or for points, the first."""
    controllers = robot.get_controllers()

    def named(*classes: type) -> list[str]:
        return [each for each, controller in controllers.items() if isinstance(controller, classes)]

    velocities = named(MoveBySpeedController, DifferentialDriveController)
    goals = named(MoveToPointBySpeedController) or named(MoveAlongPathPointsController)
    return RobotControls(
        name,
        _velocity(velocities[0], controllers[velocities[0]].action_space()) if velocities else None,
        goals[0] if goals else None,
        bool(goals) and isinstance(controllers[goals[0]], MoveAlongPathPointsController),
        tuple(named(InverseKinematicsController)),
        tuple(named(GripperController)),
    )


def _velocity(name: str, space: Any) -> VelocityControl:
    labels = (SPEEDS[0], SPEEDS[2]) if len(space.low) == 2 else SPEEDS
    low, high = (tuple(limit.astype(float).tolist()[:3]) for limit in (space.low, space.high))
    return VelocityControl(name, labels, low, high)
