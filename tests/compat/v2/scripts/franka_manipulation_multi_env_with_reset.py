"""Two Frankas; one is reset in the middle, the other does not notice (351 steps)."""

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import ManipulationTaskCfg

config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=2,
    env_offset_size=4,
    task_configs=[
        ManipulationTaskCfg(
            max_steps=500,
            target='franka',
            episode_idx=episode,
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[FrankaRobotCfg(position=(0, 0, 0), controllers=[arm_ik_cfg, gripper_cfg])],
        )
        for episode in range(8)
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
obs, _ = env.reset()

actions = [
    {arm_ik_cfg.name: [np.array([0.4, 0.0, 0.45]), np.array([0.0, 1.0, 0.0, 0.0])]},
    {gripper_cfg.name: ['close']},
    {gripper_cfg.name: ['open']},
    {gripper_cfg.name: ['close']},
]
fingers = {}
i = 0
while env.simulation_app.is_running():
    action = {'franka': actions[i // 100 % 4]}
    i += 1
    obs, *_ = env.step(action=[action, action])
    fingers[i] = obs[1]['franka']['controllers']['gripper_controller']['gripper_pos']
    if i == 1:
        name = list(env.runner.current_tasks.keys())[1]
        articulation = env.runner.current_tasks[name].robots['franka'].articulation
        world, local = articulation.get_world_pose()[0], articulation.get_pose()[0]
        assert np.linalg.norm(world - local) == 4
        assert np.linalg.norm(world - obs[1]['franka']['position']) == 4
    if i == 350:
        _, info = env.reset([0])
        assert info[0] is not None
    if i == 351:
        break
assert np.allclose(fingers[351], fingers[350], atol=0.01)
assert not np.allclose(fingers[351], fingers[250], atol=0.01)
env.close()
