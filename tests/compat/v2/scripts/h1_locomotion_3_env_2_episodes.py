"""Three envs, two episodes: the third env never gets one (steps of an episode: argument)."""

import sys

from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

max_steps = int(sys.argv[1])
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=3,
    env_offset_size=5,
    task_configs=[
        FiniteStepTaskCfg(
            max_steps=max_steps,
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[move_by_speed_cfg])],
        )
        for _ in range(2)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
_, task_configs = env.reset()
assert len(task_configs) == 3 and task_configs[2] is None

i = 0
resets = []
while env.simulation_app.is_running():
    i += 1
    obs, reward, terminated, truncated, info = env.step(action=[{'h1': {'move_by_speed': (1.0, 0.0, 0.0)}}] * 3)
    assert len(obs) == 3
    assert obs[0] is not None and obs[1] is not None and obs[2] is None
    assert reward == [-1] * 3 and truncated == [False] * 3
    env_ids = [idx for idx, done in enumerate(terminated) if done]
    if env_ids:  # the third one from the first step on
        _, info = env.reset(env_ids=env_ids)
        assert len(info) == len(env_ids) and not any(info)
        resets.append(env_ids)
    if all(terminated):
        break
assert i == max_steps
assert resets == [[2]] * (max_steps - 1) + [[0, 1, 2]]
env.close()
