"""Robots of an extension package for InternUtopia 2.x: one object per env, derived from `BaseRobot` alone.

They say nothing of what is new since: no model, no drives, no home, no kind of base. Each sets its gains when its env
is ready, as 2.x's own robots do. Stiffness and damping, by part of a joint's name, are those of InternUtopia 2.2.1.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia_extension.configs.joint_names import ALIENGO_12, G1_SIM, GR1_DOF_54, H1_19, H1_GYM_19
from internutopia_extension.robots.jetbot import WheeledRobot

Gains = dict[str, tuple[float, float]]

H1_GAINS: Gains = {
    'knee': (300, 6),
    'hip': (200, 5),
    'torso': (300, 6),
    'shoulder': (100, 2),
    'elbow': (100, 2),
    'ankle': (40, 2),
}
G1_GAINS: Gains = {
    'hip': (150, 2),
    'knee': (300, 4),
    'ankle': (50, 5),
    'waist': (300, 5),
    'shoulder': (200, 4),
    'elbow': (100, 1),
    'wrist': (20, 0.5),
}
GR1_GAINS: Gains = {
    'hip_roll': (251.625, 14.72),
    'hip_yaw': (362.52, 10.0833),
    'hip_pitch': (200, 11),
    'knee': (200, 11),
    'ankle': (10.9805, 0.6),
    'waist': (350, 15),
    'head': (112.06, 3.1),
    'shoulder_yaw': (112.06, 3.1),
    'shoulder': (92.85, 2.575),
    'elbow': (112.06, 3.1),
    'wrist_yaw': (112.06, 3.1),
    'wrist': (10, 1),
    '_': (5, 2),  # the fingers
}


def gains_of(joints: list[str], gains: Gains) -> tuple[np.ndarray, np.ndarray]:
    """Stiffness and damping in the order of some joints."""
    rows = [next(pair for part, pair in gains.items() if part in joint) for joint in joints]
    kps, kds = zip(*rows, strict=True)
    return np.array(kps, np.float32), np.array(kds, np.float32)


class OldRobot(BaseRobot):
    """What these robots have in common."""

    base: str

    def __init__(self, config: Any, scene: IScene):
        super().__init__(config, scene)
        self._start_position = np.array(config.position) if config.position is not None else None
        self._start_orientation = np.array(config.orientation) if config.orientation is not None else None
        self._robot_scale = np.array([1.0, 1.0, 1.0])
        if config.scale is not None:
            self._robot_scale = np.array(config.scale)
        self.articulation = self.make_articulation()
        self._robot_base: IRigidBody | None = None

    def make_articulation(self) -> IArticulation:
        return IArticulation.create(
            prim_path=self.config.prim_path,
            name=self.config.name,
            position=self._start_position,
            orientation=self._start_orientation,
            usd_path=self.config.usd_path,
            scale=self._robot_scale,
        )

    def post_reset(self) -> None:
        super().post_reset()
        self._robot_base = self._rigid_body_map[self.config.prim_path + '/' + self.base]
        self.set_gains()

    def set_gains(self) -> None:
        raise NotImplementedError

    def get_robot_scale(self) -> Any:
        return self._robot_scale

    def get_robot_base(self) -> Any:
        return self._robot_base

    def get_pose(self) -> Any:
        return self.get_robot_base().get_pose()

    def apply_action(self, action: dict[str, Any]) -> None:
        for name, value in action.items():
            control = self.controllers[name].action_to_control(value)
            self.articulation.apply_action(control)

    def get_obs(self) -> OrderedDict[str, Any]:
        position, orientation = self.get_pose()
        obs = {'position': position, 'orientation': orientation, 'controllers': {}, 'sensors': {}}
        obs['controllers'], obs['sensors'] = self._get_controllers_and_sensors_obs()
        return self._make_ordered(obs)


@BaseRobot.register('OldH1')
class OldH1(OldRobot):
    """Names the joints that its gains are for, in an order of its own."""

    base = 'pelvis'

    def post_reset(self) -> None:
        super().post_reset()
        self._left_ankle = self._rigid_body_map[self.config.prim_path + '/left_ankle_link']
        self._right_ankle = self._rigid_body_map[self.config.prim_path + '/right_ankle_link']
        self._imu = self._rigid_body_map[self.config.prim_path + '/imu_link']
        self._logo = self._rigid_body_map[self.config.prim_path + '/logo_link']
        self.articulation.set_enabled_self_collisions(True)
        self.articulation.set_solver_position_iteration_count(4)
        self.articulation.set_solver_velocity_iteration_count(0)

    def set_gains(self) -> None:
        kps, kds = gains_of(H1_GYM_19, H1_GAINS)
        indices = np.array([self.articulation.get_dof_index(name) for name in H1_GYM_19])
        self.articulation.set_gains(kps=kps, kds=kds, joint_indices=indices)

    def get_ankle_height(self) -> float:
        return min(ankle.get_pose()[0][2] for ankle in (self._left_ankle, self._right_ankle))


@BaseRobot.register('OldH1InOrder')
class OldH1InOrder(OldH1):
    """Gives gains for all joints, in the order of 2.x."""

    def set_gains(self) -> None:
        kps, kds = gains_of(H1_19, H1_GAINS)
        self.articulation.set_gains(kps=kps, kds=kds)


@BaseRobot.register('OldH1WithHand')
class OldH1WithHand(OldH1):
    def post_reset(self) -> None:
        super().post_reset()
        self._robot_ik_base = self._rigid_body_map[self.config.prim_path + '/torso_link']
        self.articulation.set_enabled_self_collisions(False)


@BaseRobot.register('OldG1')
class OldG1(OldRobot):
    base = 'pelvis'

    def post_reset(self) -> None:
        super().post_reset()
        self._imu_in_torso = self._rigid_body_map[self.config.prim_path + '/imu_link']

    def set_gains(self) -> None:
        kps, kds = gains_of(G1_SIM, G1_GAINS)
        self.articulation.set_gains(kps=kps, kds=kds)


@BaseRobot.register('OldGR1')
class OldGR1(OldRobot):
    base = 'torso_link'

    def post_reset(self) -> None:
        super().post_reset()
        self._imu_in_torso = self._rigid_body_map[self.config.prim_path + '/imu_link']
        self.articulation.set_enabled_self_collisions(False)

    def set_gains(self) -> None:
        kps, kds = gains_of(GR1_DOF_54, GR1_GAINS)
        self.articulation.set_gains(kps=kps, kds=kds)


@BaseRobot.register('OldAliengo')
class OldAliengo(OldRobot):
    base = 'base'

    def set_gains(self) -> None:
        self.articulation.set_gains(kps=np.full(len(ALIENGO_12), 40.0), kds=np.full(len(ALIENGO_12), 2.0))
        self.articulation.set_solver_position_iteration_count(8)


@BaseRobot.register('OldJetbot')
class OldJetbot(OldRobot):
    """Has no base link; its articulation is a class of its own."""

    def make_articulation(self) -> IArticulation:
        return OldWheels(
            prim_path=self.config.prim_path,
            name=self.config.name,
            wheel_dof_names=['left_wheel_joint', 'right_wheel_joint'],
            position=self._start_position,
            orientation=self._start_orientation,
            usd_path=self.config.usd_path,
            scale=self._robot_scale,
        )

    def post_reset(self) -> None:
        BaseRobot.post_reset(self)

    def get_pose(self) -> Any:
        return self.articulation.get_pose()


class OldWheels(WheeledRobot):
    """Does what classes of 2.x do when their handle is ready."""

    def initialize(self, physics_sim_view: Any = None) -> None:
        self.unwrap().initialize(physics_sim_view=physics_sim_view)
        self.found = [self.get_dof_index(name) for name in ('left_wheel_joint', 'right_wheel_joint')]

    def post_reset(self) -> None:
        self.unwrap().post_reset()
        self._articulation_controller.switch_control_mode(mode='velocity')
