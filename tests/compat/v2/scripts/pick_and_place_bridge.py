"""A bridge of boxes: Franka puts two pillars and a plank, which the script adds while the env runs.

Boxes come by `DynamicCuboid` and the scene's calls, poses are read by handles of Isaac Sim, and the height of the
bridge by the bounding boxes of its prims.
"""
# pyright: reportArgumentType=false, reportCallIssue=false, reportMissingImports=false
# pyright: reportPossiblyUnboundVariable=false, reportAttributeAccessIssue=false

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

config = Config(
    simulator=SimConfig(physics_dt=1 / 60, rendering_dt=1 / 60, use_fabric=False),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[FrankaRobotCfg(position=(0, 0, 0), controllers=[arm_ik_cfg, gripper_cfg])],
        )
    ],
)
import_extensions()
env = Env(config)
env.reset()

from omni.isaac.core.objects import DynamicCuboid  # noqa: E402
from omni.isaac.core.prims import RigidPrim  # noqa: E402
from omni.isaac.core.utils.bounds import compute_aabb, create_bbox_cache  # noqa: E402
from omni.isaac.core.utils.rotations import euler_angles_to_quat  # noqa: E402

down = euler_angles_to_quat(np.array([0.0, np.pi, 0.0]))
task = next(iter(env.runner.current_tasks.values()))
cache = create_bbox_cache()
world = env.runner._world
assert world.get_physics_dt() == 1 / 60 and world.is_playing()
hand = np.array([0.4, 0.0, 0.4])


def run(action, steps):
    for _ in range(steps):
        env.step(action=action)


def go(target, steps=40):
    """The hand on a line."""
    global hand
    start, hand = hand, np.array(target)
    for share in np.linspace(0, 1, steps + 1)[1:]:
        run({arm_ik_cfg.name: [start + share * (hand - start), down]}, 1)
    run({arm_ik_cfg.name: [hand, down]}, 25)


def put(name, scale, source, target):
    """Add a box at a place and carry it to another one."""
    path = f'/World/env_0/objects/{name}'
    box = task._scene.add(
        DynamicCuboid(prim_path=path, name=name, position=np.array(source), scale=np.array(scale), mass=0.05)
    )
    assert task._scene.object_exists(name)
    run({gripper_cfg.name: ['open']}, 15)
    go((source[0], source[1], 0.3))
    go(source)
    run({gripper_cfg.name: ['close']}, 30)
    go((source[0], source[1], 0.3))
    go((target[0], target[1], 0.3), 60)
    go(target)
    run({gripper_cfg.name: ['open']}, 15)
    go((target[0], target[1], 0.3))
    assert np.allclose(box.get_world_pose()[0], RigidPrim(path).get_world_pose()[0])
    return box


pillar = (0.04, 0.04, 0.1)
boxes = [
    put('pillar_1', pillar, (0.5, -0.2, 0.05), (0.4, 0.15, 0.052)),
    put('pillar_2', pillar, (0.5, -0.2, 0.05), (0.56, 0.15, 0.052)),
    put('plank', (0.24, 0.04, 0.03), (0.5, -0.2, 0.02), (0.48, 0.15, 0.118)),
]
for _ in range(30):
    world.step(render=False)
heights = [float(box.get_world_pose()[0][2]) for box in boxes]
top = compute_aabb(cache, '/World/env_0/objects/plank')
print('heights', heights, 'plank', top.tolist())
assert np.allclose(heights, [0.05, 0.05, 0.115], atol=0.004), heights
assert abs(top[5] - 0.13) < 0.006 and top[0] < 0.39 < 0.57 < top[3]
task._scene.remove('pillar_1')
assert not task._scene.object_exists('pillar_1')
for _ in range(60):
    world.step(render=False)
assert boxes[2].get_world_pose()[0][2] < 0.1  # a bridge on one pillar falls
env.close()
