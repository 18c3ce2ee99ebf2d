"""A robot whose articulation has a gripper of the script's own, which the built-in `GripperController` commands."""
# pyright: reportArgumentType=false, reportCallIssue=false, reportIncompatibleVariableOverride=false, reportIncompatibleMethodOverride=false, reportAttributeAccessIssue=false, reportPossiblyUnboundVariable=false

from collections import OrderedDict

import numpy as np

from internutopia.core.config import Config, RobotCfg, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.robot.articulation import ArticulationAction
from internutopia.core.robot.isaacsim.articulation import IsaacsimArticulation
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import GripperControllerCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

WIDE, NARROW = 0.03, 0.01  # m, each finger


class Pincers:
    def __init__(self, articulation: IsaacsimArticulation):
        self.articulation = articulation
        self.joints = [articulation.get_dof_index(f'panda_finger_joint{finger}') for finger in (1, 2)]

    def get_joint_positions(self):
        return self.articulation.get_joint_positions(self.joints)

    def forward(self, action: str) -> ArticulationAction:
        targets: list = [None] * self.articulation.num_dof
        for joint in self.joints:
            targets[joint] = WIDE if action == 'open' else NARROW
        return ArticulationAction(joint_positions=targets)


class PincersArm(IsaacsimArticulation):
    def initialize(self, physics_sim_view=None):  # handles are there from here on, as in Isaac Sim
        super().initialize(physics_sim_view)
        self.gripper = Pincers(self)
        self.end_effector = self.body('panda_hand')


class PincersCfg(RobotCfg):
    name: str = 'arm'
    type: str = 'PincersRobot'
    prim_path: str = '/arm'
    usd_path: str = gm.ASSET_PATH + '/robots/franka/franka.usd'


@BaseRobot.register('PincersRobot')
class PincersRobot(BaseRobot):
    def __init__(self, config: PincersCfg, scene: IScene):
        super().__init__(config, scene)
        self.articulation = PincersArm(config.usd_path, config.prim_path, config.name)

    def apply_action(self, action: dict):
        for name, controller_action in action.items():
            self.articulation.apply_action(self.controllers[name].action_to_control(controller_action))

    def get_obs(self) -> OrderedDict:
        controllers, _ = self._get_controllers_and_sensors_obs()
        return self._make_ordered({'controllers': controllers, 'eef': self.articulation.end_effector.get_pose()[0]})


def make(robot: RobotCfg) -> Env:
    task = SingleInferenceTaskCfg(
        scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd', scene_scale=(0.01, 0.01, 0.01), robots=[robot]
    )
    simulator = SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display())
    env = Env(Config(simulator=simulator, task_configs=[task]))
    env.reset()
    return env


import_extensions()
env = make(PincersCfg(controllers=[GripperControllerCfg(name='gripper')]))
for command, width in (('open', WIDE), ('close', NARROW)):
    for _ in range(240):
        obs, *_ = env.step({'gripper': [command]})
    np.testing.assert_allclose(obs['controllers']['gripper']['gripper_pos'], [width] * 2, atol=1e-3)
env.close()

# the built-in arm has one, too
env = make(FrankaRobotCfg(controllers=[arm_ik_cfg, gripper_cfg]))
arm = next(iter(env.runner.current_tasks.values())).robots['franka'].articulation
for _ in range(240):
    arm.apply_action(arm.gripper.forward(action='close'))
    obs, *_ = env.step({})
np.testing.assert_allclose(arm.gripper.get_joint_positions(), 0.0, atol=1e-3)
arm.gripper.open()
for _ in range(240):
    obs, *_ = env.step({})
np.testing.assert_allclose(arm.gripper.get_joint_positions(), 0.04, atol=1e-3)  # the end of their range
np.testing.assert_allclose(arm.end_effector.get_pose()[0], obs['eef_position'])
env.close()
