"""Helpers of Isaac Sim that are imported first of all, and a robot that is turned by them."""
# pyright: reportArgumentType=false, reportCallIssue=false, reportMissingImports=false, reportOperatorIssue=false
# isort: skip_file

from internutopia.core.config import Config, SimConfig
from omni.isaac.core.utils.rotations import euler_angles_to_quat, quat_to_euler_angles
import omni.isaac.core.utils.numpy.rotations as rotations

import numpy as np

from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, rotate_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

start = euler_angles_to_quat(np.array([0.0, 0.0, np.pi / 4]))
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[JetbotRobotCfg(position=(0.0, 0.0, 0.0), orientation=tuple(start), controllers=[rotate_cfg])],
        )
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, _ = env.reset()
assert abs(quat_to_euler_angles(obs['orientation'], degrees=True)[2] - 45) < 0.1
goal = rotations.euler_angles_to_quats(np.array([0.0, 0.0, 135.0]), degrees=True)
i = 0
while env.simulation_app.is_running():
    i += 1
    obs, *_ = env.step(action={rotate_cfg.name: [goal]})
    if obs['controllers'][rotate_cfg.name]['finished']:
        break
    assert i < 2000
assert abs(quat_to_euler_angles(obs['orientation'])[2] - np.radians(135)) < 2 * rotate_cfg.threshold
env.close()
