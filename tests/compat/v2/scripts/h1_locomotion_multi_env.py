"""Two H1 in each of 4 envs go through 9 episodes, so that the last one runs alone (steps of an episode: argument)."""
# pyright: reportArgumentType=false

import sys

from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_along_path_cfg, move_by_speed_cfg, rotate_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

max_steps = int(sys.argv[1])
controllers = [move_by_speed_cfg, move_along_path_cfg, rotate_cfg]
robots = [
    H1RobotCfg(name='h1_1', prim_path='/h1_1', position=(0.0, 1.0, 1.05), controllers=controllers),
    H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=controllers),
]
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
            robots=robots,
        )
        for _ in range(9)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, info = env.reset()
assert len(obs) == len(info) == 4

path = [(1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (3.0, 4.0, 0.0)]
action = {'h1_1': {move_along_path_cfg.name: [path]}, 'h1': {move_along_path_cfg.name: [path]}}
i = 0
ends = []
while env.simulation_app.is_running():
    i += 1
    obs, reward, terminated, _, _ = env.step(action=[action] * 4)
    assert len(obs) == len(terminated) == 4
    if not all(terminated):
        continue
    ends.append(i)
    obs, info = env.reset(env_ids=[idx for idx, done in enumerate(terminated) if done])
    if i < 1.4 * max_steps:
        assert None not in info
    if None in info:  # the last episode
        if len(ends) == 2:
            assert info.count(None) == obs.count(None) == 3
        else:
            break
assert ends == [max_steps, 2 * max_steps, 3 * max_steps]
assert info == obs == [None] * 4
env.close()
