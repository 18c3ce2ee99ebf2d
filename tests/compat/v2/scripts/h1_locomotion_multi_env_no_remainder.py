"""H1 with a camera in 4 envs goes through 8 episodes (steps of an episode: argument)."""

import sys

from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, h1_camera_cfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

max_steps = int(sys.argv[1])
camera = h1_camera_cfg.update(name='camera', resolution=(160, 160), depth=False)
config = Config(
    simulator=SimConfig(
        physics_dt=1 / 240, rendering_dt=1 / 240, rendering_interval=20, use_fabric=False, headless=not has_display()
    ),
    env_num=4,
    env_offset_size=10,
    task_configs=[
        FiniteStepTaskCfg(
            max_steps=max_steps,
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_by_speed_cfg], sensors=[camera])],
        )
        for _ in range(8)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
env.reset()
i = 0
info = obs = None
while env.simulation_app.is_running():
    i += 1
    obs, _, terminated, _, _ = env.step(action=[{'h1': {'move_by_speed': (1.0, 0.0, 0.0)}}] * 4)
    assert len(obs) == len(terminated) == 4
    if any(terminated):
        assert [each['h1']['sensors']['camera']['rgba'].shape for each in obs] == [(160, 160, 4)] * 4
        obs, info = env.reset(env_ids=[idx for idx, done in enumerate(terminated) if done])
        if i < 1.4 * max_steps:
            assert len(info) == 4 and all(info)
assert i == 2 * max_steps
assert info is not None and obs is not None and not any(info) and not any(obs)
env.close()
