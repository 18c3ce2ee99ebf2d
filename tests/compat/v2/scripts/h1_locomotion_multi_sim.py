"""Two processes with two envs each go through 9 episodes of 50 steps; robot and task are classes of this script."""
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false, reportIncompatibleMethodOverride=false, reportMissingImports=false

from typing import Any

from internutopia.core.config import Config, SimConfig
from internutopia.core.config.distribution import RayDistributionCfg
from internutopia.core.task import BaseTask
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

MAX_STEPS = 50
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=2,
    env_offset_size=10,
    metrics_save_path='none',
    task_configs=[
        SingleInferenceTaskCfg(
            type='CountingTask',
            episode_idx=episode,
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[H1RobotCfg(type='ObservingRobot', position=(0.0, 0.0, 1.05))],
        )
        for episode in range(9)
    ],
).distribute(RayDistributionCfg(proc_num=2, gpu_num_per_proc=0.5))
print(config.model_dump_json(indent=4))
import_extensions()

from internutopia_extension.robots.h1 import H1Robot  # noqa: E402 - in Isaac Sim not before the extensions are there


@H1Robot.register('ObservingRobot')
class ObservingRobot(H1Robot):
    def __init__(self, config: Any, scene: Any):
        super().__init__(config, scene)
        self.observed_actions: list[int] = []

    def apply_action(self, action: dict[str, Any]) -> None:
        self.observed_actions.append(action['test_controller'])  # there is no such controller

    def get_obs(self) -> dict[str, Any]:
        return {'observed_actions': list(self.observed_actions)}


@BaseTask.register('CountingTask')
class CountingTask(BaseTask):
    def __init__(self, config: Any, scene: Any):
        super().__init__(config, scene)
        self.evaluated = 0

    def get_observations(self) -> dict[str, Any]:
        obs = super().get_observations()
        obs['h1']['episode_idx'] = self.config.episode_idx
        return obs

    def is_done(self) -> bool:
        self.evaluated += 1
        return self.evaluated >= MAX_STEPS


env = Env(config)
assert env.is_render is None
for use in (lambda: env.runner, env.get_dt, lambda: env.simulation_app, env.finished):
    try:
        use()
    except NotImplementedError:
        continue
    raise AssertionError('a distributed run has no such thing')

obs, task_configs = env.reset()
assert len(obs) == len(task_configs) == 4
assert len(env.get_observations()) == 4
env.warm_up(5)
episodes = []
while True:
    active = env.active_task_configs
    assert all(active[i] == task_config for i, task_config in enumerate(task_configs) if task_config is not None)
    commanded = [0 if each is None else each.episode_idx for each in task_configs]
    obs, _, terminated, _, _ = env.step([{'h1': {'test_controller': number}} for number in commanded])
    running = [i for i, each in enumerate(task_configs) if each is not None]
    if any(terminated[i] for i in running):
        assert all(terminated)
        for i in running:
            assert obs[i]['h1']['observed_actions'] == [obs[i]['h1']['episode_idx']] * MAX_STEPS
            episodes.append(obs[i]['h1']['episode_idx'])
        _, task_configs = env.reset(list(range(4)))
        if not any(task_configs):
            _, _, terminated, _, _ = env.step([{}] * 4)
    if all(terminated) and not any(task_configs):
        break
assert sorted(episodes) == list(range(9))
env.close()
