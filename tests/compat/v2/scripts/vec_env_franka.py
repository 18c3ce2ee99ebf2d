"""Two Frankas in each of two envs reach points in the frame of their env (arguments: tasks, times to be there)."""
# pyright: reportArgumentType=false

import sys

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

tasks, times = int(sys.argv[1]), int(sys.argv[2])
TARGETS = {'franka_0': (0.4, 0.0, 0.45), 'franka_1': (3.4, 0.0, 0.45)}
robots = [
    FrankaRobotCfg(name=name, prim_path=f'/{name}', position=(x, 0, 0), controllers=[arm_ik_cfg, gripper_cfg])
    for name, x in zip(TARGETS, (0.0, 3.0), strict=True)
]
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=2,
    env_offset_size=10,
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd', scene_scale=(0.01, 0.01, 0.01), robots=robots
        )
        for _ in range(tasks)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, _ = env.reset()
action = {
    name: {arm_ik_cfg.name: [np.array(target), None], gripper_cfg.name: ['open']} for name, target in TARGETS.items()
}
steps = [0, 0]
finished = np.zeros((2, 2), int)
ended = 0
while env.simulation_app.is_running():
    obs, *_ = env.step(action=[action, action])
    for env_id, env_obs in enumerate(obs):
        if env_obs is None:
            continue
        steps[env_id] += 1
        for n, name in enumerate(TARGETS):
            finished[env_id, n] += env_obs[name]['controllers'][arm_ik_cfg.name]['finished']
        if (finished[env_id] >= times).all():
            ended += 1
            env.reset(env_ids=[env_id])
            finished[env_id], steps[env_id] = 0, 0
        assert steps[env_id] < 2000, f'env {env_id}: {finished}'
    if not any(obs):
        break
assert ended == tasks
env.close()
