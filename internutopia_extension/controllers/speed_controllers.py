"""Controllers of a base's speeds, which find robots that stand still under one; differential, holonomic drives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.robot import ControllerCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.util.arrays import namespace_of
from internutopia.util.log import warn_once
from internutopia.util.rotations import length, wrap_angle, yaw_of, yaw_rotate
from internutopia_extension.configs.controllers import DifferentialDriveControllerCfg, HolonomicDriveControllerCfg
from internutopia_extension.controllers.batch_values import BoxActionController

if TYPE_CHECKING:
    from internutopia.core.robot.controller import BaseController

DISTANCE = 0.2  # m: a robot that moved so far does not stand still
ANGLE = math.radians(15)  # rad, likewise for turning
_COMMANDED = np.array([1.0, math.radians(90)])  # m and rad that were commanded meanwhile
_LEAST_TIME = 1.0  # s: commanded speeds may be faster than any robot

Floats = NDArray[Any]


def has_moved(pose: Floats, anchor: Floats, distance: float = DISTANCE, angle: float = ANGLE) -> Any:
    """Return True where robots have moved: `pose` and `anchor` are x, y [m] and yaw [rad], `(..., 3)`."""
    way = pose - anchor
    return (np.hypot(way[..., 0], way[..., 1]) >= distance) | (np.abs(wrap_angle(way[..., 2])) >= angle)


class StuckDetector:
    """Detector of stuck robots for a controller of speeds: those that do not follow their commands.

    On 1 m, or a turn by 90 degrees, of its commands, a robot has moved by less than 20 cm and turned by less than 15
    degrees, for a second at least. The memory of an episode is kept in states of the controller.
    """

    def __init__(self, controller: BaseController):
        self._controller = controller
        self._anchor = controller.state((3,))  # x, y [m], yaw [rad] where it moved last
        self._commanded = controller.state((2,))  # [m], [rad] since then

    @property
    def memory(self) -> list[NDArray[Any]]:
        """Arrays of its state, `(*batch_shape, k)` each."""
        return [self._anchor, self._commanded]

    @property
    def stuck(self) -> Any:
        """Bool `(*batch_shape,)`, as of the last command."""
        return (self._commanded >= _COMMANDED).any(axis=-1)

    def update(self, speed: Any, turn: Any, env_ids: Any) -> None:
        """Record the commands of the next step: speeds [m/s] and turning rates [rad/s]."""
        position, orientation = self._controller.robot.articulation.get_pose()
        position, orientation = position[env_ids], orientation[env_ids].astype(np.float64)
        pose = np.concatenate([position[..., :2], np.asarray(yaw_of(orientation))[..., None]], axis=-1)
        commanded = np.stack(np.broadcast_arrays(np.abs(speed), np.abs(turn)), axis=-1)
        restart = has_moved(pose, self._anchor[env_ids]) | ~commanded.any(axis=-1)
        self._anchor[env_ids] = np.where(restart[..., None], pose, self._anchor[env_ids])
        commanded = np.minimum(commanded, _COMMANDED / _LEAST_TIME) * self._controller.scene.world.step_dt
        self._commanded[env_ids] = np.where(restart[..., None], 0.0, self._commanded[env_ids]) + commanded


class SpeedController(BoxActionController):
    """A controller that commands speeds, whose robot can be stuck; on a device that is not checked."""

    commands = 'drives'

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self._stuck = None if scene.world.arrays.on_device else StuckDetector(self)

    @override
    def find_stuck(self) -> Any:
        """Return True if the robot is commanded to move but stands still; False on a device, without a check."""
        return False if self._stuck is None else self._stuck.stuck


class PlanarSpeedController(SpeedController):
    """A controller of a base that moves in every direction of the ground.

    Action: forward, lateral (left) [m/s] and rotation speed (left) [rad/s], in the frame of the base.
    """

    action_shape = (3,)
    action_meaning = 'forward speed, lateral speed, rotation speed'

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        action = self.parsed(action, env_ids)
        return self.forward(action[..., 0], action[..., 2], action[..., 1], env_ids)

    def forward(
        self, forward_speed: Any = 0.0, rotation_speed: Any = 0.0, lateral_speed: Any = 0.0, env_ids: Any = ...
    ) -> ArticulationAction:
        """Compute what drives the joints at speeds [m/s, rad/s, m/s], a number or `(n,)` each."""
        raise NotImplementedError


WHEEL_JOINTS = ('left_wheel_joint', 'right_wheel_joint')


@BaseController.register('DifferentialDriveController')
class DifferentialDriveController(SpeedController):
    """Drive with two wheels. Action: forward [m/s] and rotation speed [rad/s].

    Action: forward speed [m/s] and rotation speed [rad/s], left turns positive. Wheel radius and base are those of the
    config times the robot's scale.
    """

    batched = True
    action_shape = (2,)
    action_meaning = 'forward speed, rotation speed'
    action_limits = (1.0, 4.0)

    def __init__(self, config: DifferentialDriveControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        scale = float(robot.get_robot_scale()[0])
        self.wheel_radius = config.wheel_radius * scale
        self.wheel_base = config.wheel_base * scale
        self.joint_subset = ArticulationSubset(robot.articulation, WHEEL_JOINTS)

    @override
    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        action = self.parsed(action, env_ids)
        return self.forward(forward_speed=action[..., 0], rotation_speed=action[..., 1], env_ids=env_ids)

    def forward(self, forward_speed: Any = 0, rotation_speed: Any = 0, env_ids: Any = ...) -> ArticulationAction:
        """Compute wheel velocities for speeds in m/s and rad/s, one of each or `(n,)`."""
        if self._stuck is not None:
            self._stuck.update(forward_speed, rotation_speed, env_ids)
        turn = rotation_speed * self.wheel_base
        left = (2.0 * forward_speed - turn) / (2.0 * self.wheel_radius)
        right = (2.0 * forward_speed + turn) / (2.0 * self.wheel_radius)
        return ArticulationAction(
            joint_velocities=namespace_of(left).stack([left, right], axis=-1),
            joint_indices=self.joint_subset.joint_indices,
        )


@BaseController.register('HolonomicDriveController')
class HolonomicDriveController(PlanarSpeedController):
    """Drive of a holonomic base. Action: forward and left speed [m/s], rotation speed [rad/s].

    Action: forward, lateral (left) [m/s] and rotation speed (left) [rad/s], in the frame of the base, each clamped to
    `action_limits`, with one warning (without one on a device). The turn within an env step counts: the base is
    commanded in the direction that it has in the middle of the step.
    """

    batched = True
    action_limits = (1.0, 1.0, 4.0)  # of Ridgeback: ridgeback_control/config/control.yaml

    def __init__(self, config: HolonomicDriveControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        if len(config.joint_names) != 3:
            raise ValueError(f'joint_names: expected 3 (along x, along y, about z), got {config.joint_names}')
        self.joint_subset = ArticulationSubset(robot.articulation, config.joint_names)

    @override
    def forward(
        self, forward_speed: Any = 0.0, rotation_speed: Any = 0.0, lateral_speed: Any = 0.0, env_ids: Any = ...
    ) -> ArticulationAction:
        """Compute joint velocities `(3,)` or `(n, 3)` for speeds [m/s, rad/s, m/s], a number or `(n,)` each."""
        xp, world = self.arrays.xp, self.scene.world
        yaw = self.robot.articulation.get_joint_positions(self.joint_subset.joint_indices)[env_ids][..., 2]
        still, limits = xp.zeros_like(yaw), self.arrays.constant(self.action_limits)
        commanded = xp.stack([still + forward_speed, still + lateral_speed, still + rotation_speed], axis=-1)
        speeds = xp.clip(commanded, -limits, limits)
        along, turning = speeds[..., :2], speeds[..., 2]
        if self._stuck is not None:
            self._stuck.update(length(along), turning, env_ids)
            if not np.array_equal(speeds, commanded, equal_nan=True):
                name, most = self.robot.articulation.view.name, self.action_limits
                warn_once('controller %r of robot %r: speeds beyond %s are clamped', self.config.name, name, most)
        along = yaw_rotate(yaw + 0.5 * world.step_dt * turning, along)
        velocities = xp.concat([along, turning[..., None]], axis=-1)
        return self.joint_subset.make_articulation_action(joint_velocities=velocities)
