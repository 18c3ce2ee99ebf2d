"""A controller of the script's own: it goes round in a square, by the speeds of the built-in one."""
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportIncompatibleMethodOverride=false

from collections import OrderedDict
from typing import Any

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.config.robot import ControllerCfg
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg


class SquareControllerCfg(ControllerCfg):
    name: str = 'square'
    type: str = 'SquareController'
    edge: float
    speed: float = 0.5


config = Config(
    simulator=SimConfig(physics_dt=1 / 60, rendering_dt=1 / 60, use_fabric=False, headless=not has_display()),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[
                JetbotRobotCfg(
                    position=(0.0, 0.0, 0.0),
                    controllers=[SquareControllerCfg(edge=0.5, sub_controllers=[move_by_speed_cfg])],
                )
            ],
        )
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()

from internutopia.core.robot.articulation import ArticulationAction  # noqa: E402
from internutopia.core.robot.controller import BaseController  # noqa: E402
from internutopia.core.robot.robot import BaseRobot  # noqa: E402
from internutopia.core.scene.scene import IScene  # noqa: E402


@BaseController.register('SquareController')
class SquareController(BaseController):
    """Action: how many corners. Drives an edge, turns by 90 degrees, and so on."""

    def __init__(self, config: SquareControllerCfg, robot: BaseRobot, scene: IScene) -> None:
        self.corners = 0
        self.corner = self.yaw = 0.0
        self.start: Any = None
        super().__init__(config=config, robot=robot, scene=scene)

    def forward(self, corners: int) -> ArticulationAction:
        position, (w, _, _, z) = self.robot.articulation.get_pose()
        heading = 2 * np.arctan2(z, w)
        if self.start is None:
            self.start, self.corner = position[:2].copy(), heading
        turned = (heading - self.corner + np.pi) % (2 * np.pi) - np.pi
        speed = rotation = 0.0
        if self.corners < corners and np.linalg.norm(position[:2] - self.start) < self.config.edge:
            speed = self.config.speed
        elif self.corners < corners and turned < np.pi / 2:
            rotation = 1.0
        elif self.corners < corners:
            self.corners, self.start = self.corners + 1, None
        return self.sub_controllers[0].forward(forward_speed=speed, rotation_speed=rotation)

    def action_to_control(self, action: list) -> ArticulationAction:
        assert len(action) == 1, 'action must contain 1 element'
        return self.forward(corners=action[0])

    def get_obs(self) -> OrderedDict:
        return self._make_ordered(OrderedDict(corners=self.corners))


env = Env(config)
obs, _ = env.reset()
corners = []
i = 0
while env.simulation_app.is_running():
    i += 1
    before = obs['controllers']['square']['corners']
    obs, *_ = env.step(action={'square': [4]})
    if obs['controllers']['square']['corners'] > before:
        corners.append(obs['position'][:2])
    if len(corners) == 4:
        break
    assert i < 1000, f'{len(corners)} corners so far: {corners}'
np.testing.assert_allclose(corners, [(0.5, 0), (0.5, 0.5), (0, 0.5), (0, 0)], atol=0.06)
env.close()
