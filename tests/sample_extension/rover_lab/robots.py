"""Robots: one in the way of InternUtopia 2.x, one batched, one that extends a built-in robot."""

from collections import OrderedDict

import numpy as np

from internutopia.core.config.robot import RobotCfg
from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.util import log
from internutopia.model.spec import Drives
from internutopia_extension.robots.jetbot import JetbotRobot


@BaseRobot.register('Rover')
class Rover(BaseRobot):
    def __init__(self, config: RobotCfg, scene: IScene):
        super().__init__(config, scene)
        self._start_position = np.array(config.position) if config.position is not None else None
        self._start_orientation = np.array(config.orientation) if config.orientation is not None else None
        self.articulation = IArticulation.create(
            prim_path=config.prim_path,
            name=config.name,
            position=self._start_position,
            orientation=self._start_orientation,
            usd_path=config.usd_path,
        )
        self.current_action = None

    def post_reset(self):
        super().post_reset()
        self._deck = self._rigid_body_map[self.config.prim_path + '/deck']
        self.articulation.set_gains(kps=np.array([0.0, 0.0, 50.0]), kds=np.array([40.0, 40.0, 5.0]))

    def get_robot_base(self):
        return self._deck

    def get_pose(self):
        return self._deck.get_pose()

    def apply_action(self, action: dict):
        self.current_action = action
        for controller_name, controller_action in action.items():
            if controller_name not in self.controllers:
                log.warning(f'unknown controller {controller_name} in action')
                continue
            controller = self.controllers[controller_name]
            control = controller.action_to_control(controller_action)
            self.articulation.apply_action(control)

    def get_obs(self) -> OrderedDict:
        position, orientation = self.get_pose()
        obs = {
            'position': position,
            'orientation': orientation,
            'joint_positions': self.articulation.get_joint_positions(),
            'joint_velocities': self.articulation.get_joint_velocities(),
            'speed': float(np.linalg.norm(self.articulation.get_joint_velocities()[:2])),
            'controllers': {},
            'sensors': {},
        }
        for name, controller in self.controllers.items():
            obs['controllers'][name] = controller.get_obs()
        for name, sensor in self.sensors.items():
            obs['sensors'][name] = sensor.get_data()
        return self._make_ordered(obs)


@BaseRobot.register('BatchRover')
class BatchRover(BaseRobot):
    batched = True
    base_link = 'deck'
    drives = Drives(stiffness={'yaw': 50.0}, damping={'x': 40.0, 'y': 40.0, 'yaw': 5.0})

    def get_obs(self):
        obs = super().get_obs()
        obs['speed'] = np.linalg.norm(self.articulation.get_joint_velocities()[..., :2], axis=-1)
        return obs


@BaseRobot.register('LabJetbot')
class LabJetbot(JetbotRobot):
    def __init__(self, config: RobotCfg, scene: IScene):
        super().__init__(config, scene)
        self.current_action = None

    def apply_action(self, action: dict):
        self.current_action = action
        return super().apply_action(action)

    def get_obs(self):
        obs = super().get_obs()
        obs['world_position'] = self.articulation.get_world_pose()[0]
        return obs
