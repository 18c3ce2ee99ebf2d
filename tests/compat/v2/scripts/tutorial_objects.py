"""Blocks that are put somewhere, weighed, made heavier, and fall."""
# pyright: reportArgumentType=false, reportCallIssue=false

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg, VisualCubeCfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[JetbotRobotCfg(position=(0.0, 0.0, 0.0), controllers=[move_by_speed_cfg])],
            objects=[
                DynamicCubeCfg(
                    name='box',
                    prim_path='/World/box',
                    position=(1.0, 0.0, 0.05),
                    scale=(0.1, 0.1, 0.1),
                    color=(0, 1, 0),
                ),
                DynamicCubeCfg(
                    name='lid', prim_path='/World/lid', position=(1.0, 0.0, 0.6), scale=(0.1, 0.1, 0.1), color=(0, 0, 1)
                ),
                VisualCubeCfg(
                    name='goal',
                    prim_path='/World/goal',
                    position=(1.0, 1.0, 0.05),
                    scale=(0.1, 0.1, 0.1),
                    color=[1, 0, 0],
                ),
            ],
        )
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, _ = env.reset()
box, lid = env.runner.get_obj('box'), env.runner.get_obj('lid')
lid.set_mass(0.5)
assert abs(lid.get_mass() - 0.5) < 1e-6
i = 0
heights = []
while env.simulation_app.is_running():
    i += 1
    obs, *_ = env.step(action={})
    heights.append(lid.get_world_pose()[0][2])
    if i == 240:
        np.testing.assert_allclose(lid.get_world_pose()[0], [1.0, 0.0, 0.15], atol=0.01)  # on the box
        lid.set_world_pose(position=np.array([0.6, 0.0, 0.3]), orientation=np.array([1.0, 0.0, 0.0, 0.0]))
        lid.set_linear_velocity(np.zeros(3))
    if i == 480:
        break
np.testing.assert_allclose(0.6 - heights[11], 0.5 * 9.81 * (12 / 240) ** 2, rtol=0.1)  # falls freely at first
np.testing.assert_allclose(lid.get_world_pose()[0], [0.6, 0.0, 0.05], atol=0.01)
np.testing.assert_allclose(box.get_world_pose()[0], [1.0, 0.0, 0.05], atol=0.01)
np.testing.assert_allclose(env.runner.get_obj('goal').get_world_pose()[0], [1.0, 1.0, 0.05], atol=1e-5)
env.close()
