"""Five episodes of 100 steps, each with a camera of another name."""

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, h1_camera_cfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

h1 = H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_by_speed_cfg])
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    task_configs=[
        FiniteStepTaskCfg(
            max_steps=100,
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[h1.update(sensors=[h1_camera_cfg.update(name=f'camera_{n}', resolution=(64, 64))])],
        )
        for n in range(5)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, info = env.reset()
env.warm_up(5, physics=False)
i = 0
checked = []
while env.simulation_app.is_running():
    i += 1
    obs, _, terminated, _, _ = env.step(action={'move_by_speed': [1.0, 0.0, 0.0]})
    if i % 100 == 1:
        (name,) = obs['sensors']
        assert name == f'camera_{i // 100}'
        assert obs['sensors'][name]['rgba'].shape == (64, 64, 4)
        checked.append(i)
    if terminated:
        obs, info = env.reset()
        if not info:
            break
        env.warm_up(5, physics=False)
assert checked == [1, 101, 201, 301, 401] and i == 500
env.close()
