"""A bridge between a planner and Franka: each of its commands is sent once, and the drives hold it until the next."""
# pyright: reportArgumentType=false, reportCallIssue=false, reportMissingImports=false

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks.single_inference_task import SingleInferenceTaskCfg

cube = DynamicCubeCfg(
    name='cube', prim_path='/World/cube', position=(0.45, 0.1, 0.025), scale=(0.05, 0.05, 0.05), mass=0.05
)
task = SingleInferenceTaskCfg(
    scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
    scene_scale=(0.01, 0.01, 0.01),
    robots=[FrankaRobotCfg(position=(0, 0, 0), controllers=[arm_ik_cfg, gripper_cfg])],
    objects=[cube],
)
config = Config(
    simulator=SimConfig(physics_dt=1 / 60, rendering_dt=1 / 60, headless=not has_display(), use_fabric=False),
    env_num=2,
    env_offset_size=5,
    task_configs=[task, task],
)
import_extensions()
env = Env(config)
env.reset()

from omni.isaac.core.utils.rotations import euler_angles_to_quat  # noqa: E402

down = euler_angles_to_quat(np.array([0.0, np.pi, 0.0]))


def send(command: dict, wait: int) -> list:
    """Command env 1 once, then only step; the arm of env 0 gets nothing at all."""
    obs, *_ = env.step(action=[{}, {'franka': command}])
    for _ in range(wait):
        obs, *_ = env.step(action=[{}, {}])
    return obs


def hand_to(x: float, y: float, z: float) -> dict:
    return {arm_ik_cfg.name: [np.array([x, y, z]), down]}


start = env.get_observations()[0]['franka']['joint_positions']
send({gripper_cfg.name: ['open']}, 30)
send(hand_to(0.45, 0.1, 0.2), 90)
obs = send(hand_to(0.45, 0.1, 0.025), 90)
arm = obs[1]['franka']['controllers'][arm_ik_cfg.name]
assert arm['finished'] and np.linalg.norm(arm['eef_position'] - [0.45, 0.1, 0.025]) < 0.01, arm
send({gripper_cfg.name: ['close']}, 60)
send(hand_to(0.45, 0.1, 0.3), 120)
obs = send(hand_to(0.35, -0.2, 0.3), 120)

task_1 = next(each for each in env.runner.current_tasks.values() if each.env_id == 1)
lifted = task_1._scene.get(task_1.objects['cube'].name)
position = lifted.get_pose()[0]
assert np.linalg.norm(position - [0.35, -0.2, 0.3]) < 0.03, position
world = lifted.get_world_pose()[0] - np.array(task_1.env_offset)
assert np.allclose(world, position, atol=1e-5)
assert lifted.unwrap().prim_path == '/World/env_1/objects/World/cube'
assert np.allclose(obs[0]['franka']['joint_positions'], start, atol=0.01)
assert np.allclose(env.runner.get_obj('cube').get_pose()[0], [0.45, 0.1, 0.025], atol=0.002)
print('lifted to', position)
env.close()
