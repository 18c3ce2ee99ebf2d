"""Sixteen Jetbots in sixteen envs drive a square; each env runs two episodes."""

from internutopia import Config, Env, SimConfig
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_along_path_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

SQUARE = [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]  # m, env frame

jetbot = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_along_path_cfg.update(rotation_speed=4.0)])
task = FiniteStepTaskCfg(scene_asset_path='scenes/empty.xml', robots=[jetbot], max_steps=600)
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, substeps=4),
    env_num=16,
    task_configs=[task] * 32,
    metrics_save_path='none',
)

import_extensions()
env = Env(config)
obs, _ = env.reset()
arrived = 0
while env.simulation_app.is_running():
    obs, reward, terminated, truncated, info = env.step([{'jetbot': {'move_along_path': [SQUARE]}}] * env.env_num)
    ended = [i for i in range(env.env_num) if terminated[i] or truncated[i]]
    for i in ended:
        arrived += obs[i]['jetbot']['controllers']['move_along_path']['finished']
    if ended:
        env.reset(ended)
env.close()

print(f'{arrived} of {len(config.task_configs)} Jetbots came back to their start')
assert arrived == len(config.task_configs)
