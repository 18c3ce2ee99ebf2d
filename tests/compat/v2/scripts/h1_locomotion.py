"""One H1 walks a path (2000 steps)."""

import time

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_along_path_cfg, move_by_speed_cfg, rotate_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[
                H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_by_speed_cfg, move_along_path_cfg, rotate_cfg])
            ],
        )
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
times = {'start': time.time()}
env = Env(config)
times['env'] = time.time()
obs, _ = env.reset()
times['reset'] = time.time()

i = 0
path = [(1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (3.0, 4.0, 0.0)]
while env.simulation_app.is_running():
    i += 1
    obs, reward, terminated, truncated, info = env.step(action={move_along_path_cfg.name: [path]})
    assert (reward, terminated, truncated) == (0.0, False, False)
    if i % 100 == 0:
        x, y, z = obs['position']
        assert x < 5 and y < 5 and z < 2, f'step {i}: {obs["position"]}'
    if i == 2000:
        times['steps'] = time.time()
        break
assert i == 2000
assert obs['position'][0] > 0.5 and obs['position'][2] > 0.8  # on its way, upright
assert obs['controllers']['move_along_path']['current_index'] >= 1
assert list(times.values()) == sorted(times.values())
env.simulation_app.close()
