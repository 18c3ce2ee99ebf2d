"""A robot class of the script's own, derived from `BaseRobot`: an arm whose gripper is observed, too."""
# pyright: reportArgumentType=false, reportCallIssue=false, reportIncompatibleVariableOverride=false, reportIncompatibleMethodOverride=false

from collections import OrderedDict
from typing import Any

import numpy as np

from internutopia.core.config import Config, RobotCfg, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

JOINTS = [f'panda_joint{number}' for number in range(1, 8)]
FINGERS = ['panda_finger_joint1', 'panda_finger_joint2']
HOME = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8]
OPEN = [0.03, 0.03]


class ArmCfg(RobotCfg):
    name: str = 'arm'
    type: str = 'ArmRobot'
    prim_path: str = '/arm'
    usd_path: str = gm.ASSET_PATH + '/robots/franka/franka.usd'


config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=2,
    env_offset_size=10,
    metrics_save_path='none',
    task_configs=[
        FiniteStepTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[
                ArmCfg(
                    position=(0.5, float(episode), 0.0),
                    controllers=[JointControllerCfg(name='joints', joint_names=[*JOINTS, *FINGERS])],
                )
            ],
            max_steps=300,
        )
        for episode in range(2)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()

from internutopia.core.robot.articulation import IArticulation  # noqa: E402
from internutopia.core.robot.robot import BaseRobot  # noqa: E402
from internutopia.core.scene.scene import IScene  # noqa: E402


@BaseRobot.register('ArmRobot')
class ArmRobot(BaseRobot):
    def __init__(self, config: ArmCfg, scene: IScene):
        super().__init__(config, scene)
        self._start_position = np.array(config.position) if config.position is not None else None
        self._start_orientation = np.array(config.orientation) if config.orientation is not None else None
        self._robot_scale = np.array(config.scale) if config.scale is not None else np.ones(3)
        self.articulation = IArticulation.create(
            prim_path=config.prim_path,
            name=config.name,
            position=self._start_position,
            orientation=self._start_orientation,
            usd_path=config.usd_path,
            scale=self._robot_scale,
        )
        self.applied = 0

    def post_reset(self):
        super().post_reset()
        self.hand = self._rigid_body_map[self.config.prim_path + '/panda_hand']
        self.articulation.set_gains(
            kps=np.array([400.0] * 7 + [1000.0] * 2), kds=np.array([40.0] * 7 + [100.0] * 2), joint_indices=range(9)
        )

    def apply_action(self, action: dict):
        for name, controller_action in action.items():
            control = self.controllers[name].action_to_control(controller_action)
            self.articulation.apply_action(control)
            self.applied += 1

    def get_robot_scale(self):
        return self._robot_scale

    def get_obs(self) -> OrderedDict:
        position, orientation = self.articulation.get_pose()
        obs: dict[str, Any] = {
            'position': position,
            'orientation': orientation,
            'hand': self.hand.get_pose()[0],
            'fingers': self.articulation.get_joint_positions()[-2:],
            'applied': self.applied,
        }
        obs['controllers'], obs['sensors'] = super()._get_controllers_and_sensors_obs()
        return self._make_ordered(obs)


env = Env(config)
env.reset()
terminated = [False, False]
obs: list[Any] = []
while not all(terminated):
    obs, _, terminated, _, _ = env.step([{'arm': {'joints': [np.array(HOME + OPEN)]}}] * 2)
for env_id in range(2):
    arm = obs[env_id]['arm']
    np.testing.assert_allclose(arm['position'], [0.5, env_id, 0.0], atol=1e-5)  # in its own env
    np.testing.assert_allclose(arm['fingers'], OPEN, atol=0.002)
    assert list(arm)[:5] == ['position', 'orientation', 'hand', 'fingers', 'applied']
    assert arm['applied'] == 300
    assert arm['hand'][0] > 0.8 and abs(arm['hand'][1] - env_id) < 0.02
np.testing.assert_allclose(obs[1]['arm']['hand'] - obs[0]['arm']['hand'], [0, 1, 0], atol=1e-5)
env.close()
