"""Configs of controllers. All of them keep unknown fields."""

import math
from typing import Literal, Self

from pydantic import FiniteFloat, model_validator

from internutopia.config.base import NonNegativeFloat, PathStr, PositiveFloat, Vector
from internutopia.config.robot import ControllerCfg, MimicCfg
from internutopia.macros import gm
from internutopia.util import did_you_mean
from internutopia_extension.configs.joint_names import H1_19


class MoveBySpeedControllerCfg(ControllerCfg):
    """Walking at commanded forward, lateral (m/s) and rotation (rad/s) speeds, body frame."""

    type: str = 'MoveBySpeedController'
    joint_names: list[str] | None = None
    """Joints that the controller drives, in the order of its joint targets; None means the policy's."""
    policy_weights_path: PathStr
    """The walking policy: an ONNX or TorchScript file, or a YAML file that describes one."""
    policies: dict[str, PathStr] = {}
    """Files of other walking policies by name, e.g. `'rough'` for ground that is not level."""
    policy: str | None = None
    """Name of the policy in `policies` to walk with; None means `policy_weights_path`."""
    check_fit: bool = True
    """True if problems of the policy are reported as warnings, based on its numbers and, if a YAML file describes it,
    on a dry run of two seconds when it is first used."""
    hold_heading: bool = False
    """True if a closed loop holds the heading while the robot is commanded to walk without turning."""
    hold_position: bool = False
    """True if the robot returns to its position and heading when it drifts, or is pushed, while it is commanded to
    stand."""

    @model_validator(mode='after')
    def _check_policy(self) -> Self:
        if self.policy is not None and self.policy not in self.policies:
            raise ValueError(
                f'there is no policy {self.policy!r} in policies; {did_you_mean(self.policy, self.policies)}'
            )
        return self

    @property
    def policy_file(self) -> str:
        """Policy file to walk with, as written in the config."""
        return self.policy_weights_path if self.policy is None else self.policies[self.policy]


class LearnedControllerCfg(ControllerCfg):
    """A policy of any learning task; `sub_controllers` has the one controller that it was trained with."""

    type: str = 'LearnedController'
    policy_weights_path: PathStr
    """The policy: an ONNX or TorchScript file with its metadata, such as `internutopia export` writes."""


class H1MoveBySpeedControllerCfg(MoveBySpeedControllerCfg):
    """H1's walking policy."""

    type: str = 'H1MoveBySpeedController'
    hold_heading: bool = True
    hold_position: bool = True
    joint_names: list[str] | None = H1_19
    policy_weights_path: PathStr = gm.ASSET_PATH + '/robots/h1/policy/move_by_speed/h1_loco_model_20000.pt'


class AliengoMoveBySpeedControllerCfg(MoveBySpeedControllerCfg):
    """Aliengo's walking policy."""

    type: str = 'AliengoMoveBySpeedController'
    hold_heading: bool = True
    hold_position: bool = True


class G1MoveBySpeedControllerCfg(MoveBySpeedControllerCfg):
    """G1's walking policy, at a commanded base height."""

    type: str = 'G1MoveBySpeedController'
    hold_heading: bool = True
    hold_position: bool = True


class GR1MoveBySpeedControllerCfg(MoveBySpeedControllerCfg):
    """GR1's walking policy, at a commanded base height."""

    type: str = 'GR1MoveBySpeedController'
    hold_heading: bool = True
    hold_position: bool = True


class DifferentialDriveControllerCfg(ControllerCfg):
    """Differential drive: turns forward (m/s) and rotation (rad/s) speeds into the velocities of two wheels."""

    type: str = 'DifferentialDriveController'
    wheel_radius: PositiveFloat
    """Radius of the wheels at scale 1, m."""
    wheel_base: PositiveFloat
    """Distance between the wheels at scale 1, m."""


class HolonomicDriveControllerCfg(ControllerCfg):
    """Drive in every direction: forward, lateral (m/s) and rotation (rad/s) speeds of a base on joints in the plane."""

    type: str = 'HolonomicDriveController'
    joint_names: list[str]
    """Joints of the base: along x, along y, and about z above these."""


class MoveToPointBySpeedControllerCfg(ControllerCfg):
    """Straight motion to a point of the ground plane; needs a move-by-speed controller below it."""

    type: str = 'MoveToPointBySpeedController'
    forward_speed: FiniteFloat | None = None
    """Forward speed, m/s; None means 1.0."""
    rotation_speed: FiniteFloat | None = None
    """Rotation speed, rad/s; None means 8.0."""
    threshold: NonNegativeFloat | None = None
    """Planar distance below which the point counts as reached, m; None means 0.02."""


class MoveAlongPathPointsControllerCfg(ControllerCfg):
    """Motion through a list of points, in sequence; needs a move-to-point controller below it."""

    type: str = 'MoveAlongPathPointsController'
    name: str = 'move_along_path'
    forward_speed: FiniteFloat | None = None
    """Forward speed, m/s; None means 1.0."""
    rotation_speed: FiniteFloat | None = None
    """Rotation speed, rad/s; None means 8.0."""
    threshold: NonNegativeFloat | None = None
    """Planar distance below which a point counts as reached, m; None means 0.02."""
    look_ahead: PositiveFloat | None = None
    """Look-ahead distance on the path, m, with which the robot takes corners without stopping; None means that it goes
    straight to each point in sequence, slowing down at each."""


class RotateControllerCfg(ControllerCfg):
    """Turn to a yaw; needs a move-by-speed controller below it."""

    type: str = 'RotateController'
    rotation_speed: FiniteFloat | None = None
    """Rotation speed, rad/s; None means 3.0."""
    threshold: NonNegativeFloat | None = None
    """Yaw error below which the goal counts as reached, rad; None means 0.02."""


class DiscreteControllerCfg(ControllerCfg):
    """Base of the configs of controllers with the actions stop, forward, left and right."""

    forward_distance: PositiveFloat = 0.25
    """Length of a step forward, m."""
    turn_angle: PositiveFloat = math.radians(15)
    """Angle of a turn, rad."""


class DiscreteMoveControllerCfg(DiscreteControllerCfg):
    """Discrete steps, walked or driven; needs a move-by-speed controller below it."""

    type: str = 'DiscreteMoveController'
    forward_speed: PositiveFloat = 0.5
    """Forward speed, m/s."""
    rotation_speed: PositiveFloat = 1.0
    """Rotation speed, rad/s."""
    distance_tolerance: NonNegativeFloat = 0.005
    """Largest shortfall of a step forward, m."""
    angle_tolerance: NonNegativeFloat = 0.01
    """Largest shortfall of a turn, rad."""
    patience: PositiveFloat = 3.0
    """Longest duration of a step, as a multiple of the time that it takes at full speed."""
    allow_sliding: bool = True
    """Effect of a wall that pushes the robot aside during a step forward: True lets it slide along the wall, False ends
    the step as a collision once it is 5 cm off its line."""


class FlashControllerCfg(DiscreteControllerCfg):
    """Discrete steps by teleportation, if nothing is in the way."""

    type: str = 'FlashController'
    radius: PositiveFloat | None = None
    """Radius of the upright cylinder that has to be free, m; None, here and below: as of the robot (`Agent.of`)."""
    height: PositiveFloat | None = None
    """Height of the cylinder, m."""
    step_height: PositiveFloat | None = None
    """Height difference of the ground that a step may go up or down, m; lower things are no obstacles."""
    allow_sliding: bool = False
    """Effect of an obstacle on a step forward: False leaves the robot where it is, True moves it along the obstacle,
    by the component of the step in that direction. Either way it has collided."""


class ChunkControllerCfg(ControllerCfg):
    """Counter of the steps of a chunk of actions that are still to come, for cameras that wait for its end."""

    type: str = 'ChunkController'


class RecoverControllerCfg(ControllerCfg):
    """Recovery of a fallen robot at a given position; needs a joint controller below it."""

    type: str = 'RecoverController'
    recover_height: PositiveFloat
    """Height of the robot's base when it stands again, m above the ground."""


class JointControllerCfg(ControllerCfg):
    """Position (rad or m) and velocity targets for named joints."""

    type: str = 'JointController'
    joint_names: list[str]
    """Joints that actions command, in their order."""
    mimic: dict[str, MimicCfg] = {}
    """Further joints, which follow those, by name."""


class ActuatorControllerCfg(ControllerCfg):
    """Raw control signals of the actuators that a model file defines, in the model's order and units."""

    type: str = 'ActuatorController'
    name: str = 'actuators'


class InverseKinematicsControllerCfg(ControllerCfg):
    """Motion of an end effector to a position and, if given, an orientation."""

    type: str = 'InverseKinematicsController'
    robot_description_path: PathStr = ''
    """Description of the arm for Isaac Sim (YAML). The embedded engine uses the robot's own model instead."""
    robot_urdf_path: PathStr = ''
    """Kinematics of the arm for Isaac Sim (URDF). The embedded engine uses the robot's own model instead."""
    end_effector_frame_name: str
    """Link that is brought to the target."""
    threshold: NonNegativeFloat
    """Distance to the target below which it counts as reached, m at scale 1."""
    reference: Literal['world', 'robot', 'arm_base'] | None = None
    """Frame of the targets: the env's (`'world'`), the robot's or the arm base's; None means `'world'`."""
    joint_names: list[str] | None = None
    """Joints that may move; None means all between the arm base and the end effector."""
    joint_speed: PositiveFloat = 1.5
    """Speed of the joint that has the longest way to the target, rad/s (sliding joints: m/s); the others keep pace."""


class GripperControllerCfg(ControllerCfg):
    """Opening and closing of a two-finger gripper."""

    type: str = 'GripperController'


class RMPFlowControllerCfg(ControllerCfg):
    """Smooth motion of an end effector to a position and, if given, an orientation (env frame)."""

    type: str = 'RMPFlowController'
    robot_description_path: PathStr
    """Description of the arm: which joints may move, and their default positions (YAML)."""
    robot_urdf_path: PathStr
    """Kinematics of the arm (URDF)."""
    rmpflow_config_path: PathStr
    """Weights of the motion policy (YAML)."""
    end_effector_frame_name: str
    """Link of the URDF that is brought to the target."""


class GR1TeleOpControllerCfg(ControllerCfg):
    """Teleoperation by the wrists, hands and head of a person who wears a headset."""

    type: str = 'GR1TeleOpController'
    joint_names: list[str]
    """Joints that the controller drives, in the order of the joint targets."""


class FrankaMocapTeleopControllerCfg(ControllerCfg):
    """Teleoperation by the right hand of a captured person; needs an RMPFlow and a gripper controller below it."""

    type: str = 'FrankaMocapTeleopController'
    scale: Vector
    """Arm motion per hand motion along x, y, z."""
    target_position: Vector
    """Point that the hand-held camera faces (x, y, z), m, env frame."""
    origin_xyz: Vector | None = None
    """Arm position for the rest position of the hand (x, y, z), m, env frame; None means the class's own."""
    origin_xyz_angle: Vector | None = None
    """Turn of the captured person about x, y, z, rad; None means none."""


class LayoutEditMocapControllerCfg(ControllerCfg):
    """Picking and placing of things by the hands of a captured person; needs an RMPFlow controller below it.

    Read besides the declared fields: `hand_scale`, `right_hand_path`, `left_hand_path`, `right_hand_prim_path`,
    `left_hand_prim_path`, `save_asset_path`, `save_robot`.
    """

    type: str = 'LayoutEditMocapController'
    scale: Vector
    """Hand motion in the scene per captured motion along x, y, z."""
    target_position: Vector
    """Point that the camera faces (x, y, z), m, env frame."""
    rh_origin_xyz: Vector | None = None
    """Rest position of the right hand (x, y, z), m, env frame; None means the class's own."""
    lh_origin_xyz: Vector | None = None
    """Rest position of the left hand (x, y, z), m, env frame; None means the class's own."""
    origin_xyz_angle: Vector | None = None
    """Turn of the captured person about x, y, z, rad; None means none."""


def ground_moves(
    move_by_speed: ControllerCfg,
    rotation_speeds: tuple[float, float, float],
    thresholds: tuple[float, float, float],
) -> tuple[
    MoveToPointBySpeedControllerCfg,
    MoveAlongPathPointsControllerCfg,
    RotateControllerCfg,
    DiscreteMoveControllerCfg,
    FlashControllerCfg,
]:
    """Return ready-made configs of a robot on the ground: to a point, along a path, turns, discrete and flash steps.

    Args:
        move_by_speed: the controller below them.
        rotation_speeds: rad/s, of going to a point, along a path, and of turning on the spot.
        thresholds: of these [m, m, rad].
    """
    to_point, along_path, rotate = zip(rotation_speeds, thresholds, strict=True)
    move_to_point = MoveToPointBySpeedControllerCfg(
        name='move_to_point',
        forward_speed=1.0,
        rotation_speed=to_point[0],
        threshold=to_point[1],
        sub_controllers=[move_by_speed],
    )
    return (
        move_to_point,
        MoveAlongPathPointsControllerCfg(
            forward_speed=1.0, rotation_speed=along_path[0], threshold=along_path[1], sub_controllers=[move_to_point]
        ),
        RotateControllerCfg(
            name='rotate', rotation_speed=rotate[0], threshold=rotate[1], sub_controllers=[move_by_speed]
        ),
        DiscreteMoveControllerCfg(name='move_by_discrete', sub_controllers=[move_by_speed]),
        FlashControllerCfg(name='move_by_flash'),
    )
