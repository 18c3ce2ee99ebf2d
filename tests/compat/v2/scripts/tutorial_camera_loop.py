"""Pictures of a robot that drives past a block: colour and depth of every frame, and what the camera is."""
# pyright: reportArgumentType=false, reportCallIssue=false, reportPossiblyUnboundVariable=false

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import VisualCubeCfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, camera_cfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

config = Config(
    simulator=SimConfig(
        physics_dt=1 / 240, rendering_dt=1 / 240, rendering_interval=11, use_fabric=False, headless=not has_display()
    ),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[
                JetbotRobotCfg(
                    position=(0.0, 0.0, 0.0),
                    controllers=[move_by_speed_cfg],
                    sensors=[camera_cfg.update(resolution=(64, 36), depth=True, camera_params=True, landmarks=True)],
                )
            ],
            objects=[
                VisualCubeCfg(
                    name='block', prim_path='/block', position=(2.0, 0.0, 0.1), scale=(0.2, 0.2, 0.2), color=[1.0, 0, 0]
                )
            ],
        )
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, _ = env.reset()
frames = []
i = 0
while env.simulation_app.is_running():
    i += 1
    obs, *_ = env.step(action={'move_by_speed': (0.5, 0.0)})
    camera = obs['sensors']['camera']
    if obs['render']:
        red = (camera['rgba'][..., 0] > 2.0 * camera['rgba'][..., 1]) & (camera['rgba'][..., 0] > 40)
        frames.append((i, red.sum(), camera['depth'][red].min(), obs['position'][0]))
    if i == 480:
        break
assert [number for number, *_ in frames] == list(range(frames[0][0], 481, 12)), frames
assert list(camera) == ['bounding_box_2d_tight', 'landmarks', 'rgba', 'depth', 'camera_params']
assert camera['rgba'].shape == (36, 64, 4) and camera['depth'].shape == (36, 64)
assert camera['landmarks'] == ['block']
assert tuple(camera['camera_params']['renderProductResolution']) == (64, 36)
sizes, depths, places = (np.array(column) for column in list(zip(*frames, strict=True))[1:])
assert sizes[-1] > 2 * sizes[0]  # the nearer, the larger
np.testing.assert_allclose(np.diff(depths), -np.diff(places), atol=0.01)
env.close()
