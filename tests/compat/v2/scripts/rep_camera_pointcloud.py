"""Points that a standing H1 sees of a block in front of it (envs, steps between two looks: arguments)."""
# pyright: reportArgumentType=false, reportCallIssue=false

import sys

import numpy as np

from internutopia.core import gym_env, vec_env
from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.h1 import H1RobotCfg, h1_camera_cfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

env_num, every = int(sys.argv[1]), int(sys.argv[2])
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=env_num,
    env_offset_size=10,
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[
                H1RobotCfg(
                    position=(0.0, 0.0, 1.05),
                    controllers=[move_by_speed_cfg],
                    sensors=[h1_camera_cfg.update(name='camera', resolution=(320, 240), pointcloud=True)],
                )
            ],
            objects=[
                DynamicCubeCfg(
                    name='cube', prim_path='/cube', position=(2.0, 0.0, 0.5), scale=(0.4, 0.4, 1.0), color=(1, 0, 0)
                )
            ],
        )
        for _ in range(env_num)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = gym_env.Env(config) if env_num == 1 else vec_env.Env(config)
env.reset()


def check(points: np.ndarray) -> None:
    """The top of the block is at 1 m, the floor at 0."""
    x, y, z = points.T
    on_block = (x > 1.82) & (x < 2.18) & (y > -0.18) & (y < 0.18)
    assert on_block.any() and (abs(z[on_block] - 1.0) < 0.02).all()
    floor = (np.hypot(x, y) < 8.0) & ~((x > 1.78) & (x < 2.22) & (y > -0.22) & (y < 0.22))
    assert floor.any() and (abs(z[floor]) < 0.02).all()


action = {'move_by_speed': (0.0, 0.0, 0.0)}
i = looks = 0
while env.simulation_app.is_running():
    i += 1
    obs, *_ = env.step(action if env_num == 1 else [{'h1': action}] * env_num)
    if i % every == 0:
        robots = [obs] if env_num == 1 else [each['h1'] for each in obs]
        for robot in robots:
            check(robot['sensors']['camera']['pointcloud'])
        looks += 1
    if looks == 4:
        break
assert looks == 4
env.close()
