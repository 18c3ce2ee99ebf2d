"""Franka goes to a point, opens, goes to another one with a given orientation, closes (2000 steps at most)."""

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[FrankaRobotCfg(position=(0, 0, 0), controllers=[arm_ik_cfg, gripper_cfg])],
        )
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, _ = env.reset()

# in Isaac Sim not before there is an app
from omni.isaac.core.utils.rotations import euler_angles_to_quat  # noqa: E402  # pyright: ignore[reportMissingImports]

quarter_turns = euler_angles_to_quat(np.array([np.pi / 2, np.pi / 2, np.pi / 2]))
todo = [
    {arm_ik_cfg.name: [np.array([0.4, 0.0, 0.45]), None]},
    {gripper_cfg.name: ['open']},
    {arm_ik_cfg.name: [np.array([0.4, 0.4, 0.1]), quarter_turns]},
    {gripper_cfg.name: ['close']},
]
OPEN, CLOSED = 0.04, 0.0  # m, each finger
i = 0
while env.simulation_app.is_running() and todo:
    i += 1
    obs, *_ = env.step(action=todo[0])
    fingers = obs['controllers'][gripper_cfg.name]['gripper_pos']
    if todo[0].get(gripper_cfg.name) == ['open']:
        done = (fingers > 0.9 * OPEN).all()
    elif gripper_cfg.name in todo[0]:
        done = (fingers < 0.002).all()
    else:
        done = obs['controllers'][arm_ik_cfg.name]['finished']
    if done:
        todo.pop(0)
    assert i < 2000, f'still to do: {todo}'
assert np.linalg.norm(obs['controllers'][arm_ik_cfg.name]['eef_position'] - [0.4, 0.4, 0.1]) < 0.02
env.close()
