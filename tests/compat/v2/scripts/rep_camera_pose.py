"""A camera that is carried along above a walking H1 (500 steps)."""
# pyright: reportAttributeAccessIssue=false

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, h1_tp_camera_cfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[
                H1RobotCfg(
                    position=(0.0, 0.0, 1.05),
                    controllers=[move_by_speed_cfg],
                    sensors=[h1_tp_camera_cfg.update(name='camera', resolution=(320, 240), enable=True)],
                )
            ],
        )
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, _ = env.reset()
task_name = next(iter(env.runner.current_tasks))
camera = env.runner.current_tasks[task_name].robots['h1'].sensors['camera']
i = 0
while env.simulation_app.is_running():
    i += 1
    obs, *_ = env.step(action={'move_by_speed': (1.0, 0.0, 0.0)})
    x, y, z = (float(value) for value in obs['position'])
    camera.set_world_pose([x, y, z + 5], np.array([-0.7071, 0, 0, 0.7071]))
    if i % 100 == 0:
        position, _ = camera.get_world_pose()
        assert abs(position[0] - x) < 0.1 and abs(position[1] - y) < 0.1
        seen = obs['sensors']['camera']
        assert len(seen) == 2
        assert seen['rgba'].shape == (240, 320, 4) and seen['depth'].shape == (240, 320)
    if i == 500:
        break
assert i == 500 and obs['position'][0] > 1.0
env.close()
