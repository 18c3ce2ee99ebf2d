"""A scene without robots, in as many envs as the argument says: 1 means `gym_env.Env`."""
# pyright: reportArgumentType=false, reportPossiblyUnboundVariable=false

import sys

from internutopia.core import gym_env, vec_env
from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

env_num = int(sys.argv[1])
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=env_num,
    task_configs=[
        SingleInferenceTaskCfg(scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd', scene_scale=(0.01, 0.01, 0.01))
        for _ in range(env_num)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = gym_env.Env(config) if env_num == 1 else vec_env.Env(config)
env.reset()
i = 0
while env.simulation_app.is_running():
    i += 1
    obs, *_ = env.step({} if env_num == 1 else [{} for _ in range(env_num)])
    if i == 2000:
        break
assert i == 2000 and obs == ({} if env_num == 1 else [{}] * env_num)
env.close()
