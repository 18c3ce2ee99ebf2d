"""Franka picks up a block: inverse kinematics and gripper, one after the other."""
# pyright: reportArgumentType=false, reportCallIssue=false, reportMissingImports=false

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

config = Config(
    simulator=SimConfig(physics_dt=1 / 60, rendering_dt=1 / 60, use_fabric=False, headless=not has_display()),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[FrankaRobotCfg(position=(0, 0, 0), controllers=[arm_ik_cfg, gripper_cfg])],
            objects=[
                DynamicCubeCfg(
                    name='block', prim_path='/block', position=(0.5, 0.0, 0.02), scale=(0.04, 0.04, 0.04), mass=0.05
                )
            ],
        )
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, _ = env.reset()

from omni.isaac.core.utils.rotations import euler_angles_to_quat  # noqa: E402

down = euler_angles_to_quat(np.array([0.0, np.pi, 0.0]))


def reach(height: float) -> dict:
    return {arm_ik_cfg.name: [np.array([0.5, 0.0, height]), down]}


plan = [
    ({gripper_cfg.name: ['open']}, 30),
    (reach(0.2), 120),
    (reach(0.02), 120),
    ({gripper_cfg.name: ['close']}, 60),
    (reach(0.3), 120),
]
block = env.runner.get_obj('block')
for action, steps in plan:
    for _ in range(steps):
        assert env.simulation_app.is_running()
        obs, *_ = env.step(action=action)
position = block.get_world_pose()[0]
assert abs(position[2] - 0.3) < 0.03, position
assert 0.015 < obs['controllers'][gripper_cfg.name]['gripper_pos'].sum() < 0.045  # it holds 0.04 m
env.close()
