"""A sensor of the script's own, on a camera of the robot: how far the nearest thing in the middle of its picture is."""
# pyright: reportCallIssue=false, reportIncompatibleVariableOverride=false, reportOptionalSubscript=false, reportPossiblyUnboundVariable=false

from collections import OrderedDict

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.config.robot import SensorCfg
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg


class RangeCfg(SensorCfg):
    name: str = 'range'
    type: str = 'RangeSensor'
    prim_path: str = 'logo_link/Camera'
    resolution: tuple[int, int] = (32, 24)


config = Config(
    simulator=SimConfig(physics_dt=1 / 48, rendering_dt=1 / 48, use_fabric=False, headless=not has_display()),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_by_speed_cfg], sensors=[RangeCfg()])],
            objects=[
                DynamicCubeCfg(
                    name='wall', prim_path='/wall', position=(3.0, 0.0, 1.5), scale=(0.2, 4.0, 3.0), mass=500
                )
            ],
        )
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()

from internutopia.core.robot.robot import BaseRobot  # noqa: E402
from internutopia.core.scene.scene import IScene  # noqa: E402
from internutopia.core.sensor.camera import ICamera  # noqa: E402
from internutopia.core.sensor.sensor import BaseSensor  # noqa: E402


@BaseSensor.register('RangeSensor')
class RangeSensor(BaseSensor):
    def __init__(self, config: RangeCfg, robot: BaseRobot, scene: IScene):
        super().__init__(config, robot, scene)
        self.config = config

    def post_reset(self):
        self.restore_sensor_info()

    def restore_sensor_info(self):
        self._camera = ICamera.create(
            name=self.config.name,
            prim_path=self._robot.config.prim_path + '/' + self.config.prim_path,
            rgba=False,
            distance_to_image_plane=True,
            resolution=self.config.resolution,
        )

    def get_data(self) -> OrderedDict:
        depth = self._camera.get_distance_to_image_plane()
        middle = depth[10:14, 14:18]
        return self._make_ordered(OrderedDict(distance=float(middle.min()), camera=self._camera.get_pose()[0]))

    def cleanup(self):
        self._camera.cleanup()


env = Env(config)
obs, _ = env.reset()
i = 0
while env.simulation_app.is_running():
    i += 1
    obs, *_ = env.step(action={'move_by_speed': (0.5, 0.0, 0.0)})
    if i % 24 == 0:
        seen = obs['sensors']['range']
        assert abs(seen['distance'] - (2.9 - seen['camera'][0])) < 0.15, seen  # it sways
    if i == 96:
        break
assert 0.5 < obs['position'][0] < 1.5
assert np.isfinite(seen['distance'])
env.close()
