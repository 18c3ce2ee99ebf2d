"""The robot and its own controllers: deltas of the hand by a kinematics solver of Isaac Sim, and the gripper."""
# pyright: basic, reportMissingImports=false, reportOptionalMemberAccess=false, reportIncompatibleVariableOverride=false
# pyright: reportIncompatibleMethodOverride=false, reportCallIssue=false, reportArgumentType=false

from collections import OrderedDict

import numpy as np

from internutopia.core.config.robot import ControllerCfg, RobotCfg
from internutopia.core.robot.articulation import ArticulationAction, IArticulation
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene


class GantryCfg(RobotCfg):
    name: str | None = 'gantry'
    type: str | None = 'GantryRobot'
    prim_path: str | None = '/gantry'


@BaseRobot.register('GantryRobot')
class GantryRobot(BaseRobot):
    def __init__(self, config: RobotCfg, scene: IScene):
        super().__init__(config, scene)
        self.articulation = IArticulation.create(
            prim_path=config.prim_path, name=config.name, position=np.array(config.position), usd_path=config.usd_path
        )

    def post_reset(self):
        super().post_reset()
        self.looks = 0
        names = self.articulation.dof_names
        fingers = np.array([name in ('left_joint', 'right_joint') for name in names])
        self.articulation.set_gains(kps=np.where(fingers, 2000, 20000), kds=np.where(fingers, 50, 600))
        self.hand = self._rigid_body_map[self.config.prim_path + '/gantry/base/x/y/hand']

    def apply_action(self, action: dict):
        for name, controller_action in action.items():
            control = self.controllers[name].action_to_control(controller_action)
            self.articulation.apply_action(control)

    def get_obs(self) -> OrderedDict:
        position, orientation = self.hand.get_pose()
        obs = OrderedDict(position=position, orientation=orientation, controllers={}, sensors={})
        obs['joint_positions'] = self.articulation.get_joint_positions()
        if self.looks % 20 == 0:
            self.pictures = {name: sensor.get_data() for name, sensor in self.sensors.items()}
        self.looks += 1
        obs['sensors'] = self.pictures
        return self._make_ordered(obs)


@BaseController.register('DeltaPoseController')
class DeltaPoseController(BaseController):
    """Moves the hand by a difference."""

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        self._solver = None
        super().__init__(config=config, robot=robot, scene=scene)

    def action_to_control(self, action) -> ArticulationAction:
        from omni.isaac.motion_generation import ArticulationKinematicsSolver, LulaKinematicsSolver

        if self._solver is None:
            lula = LulaKinematicsSolver(robot_description_path='gantry.yaml', urdf_path='gantry.urdf')
            lula.set_robot_base_pose(*self.robot.articulation.get_world_pose())
            self._solver = ArticulationKinematicsSolver(self.robot.articulation, lula, 'hand')
        position, _ = self._solver.compute_end_effector_pose()
        target, success = self._solver.compute_inverse_kinematics(target_position=position + np.array(action[0]))
        assert success
        return target


@BaseController.register('FingerController')
class FingerController(BaseController):
    """Opens and closes the fingers."""

    def __init__(self, config: ControllerCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config=config, robot=robot, scene=scene)
        self.joint_subset = ArticulationSubset(self.robot.articulation, ['left_joint', 'right_joint'])

    def action_to_control(self, action) -> ArticulationAction:
        gap = {'open': 0.0, 'close': 0.04}[action[0]]
        return self.joint_subset.make_articulation_action(joint_positions=np.array([-gap, gap]), joint_velocities=None)
