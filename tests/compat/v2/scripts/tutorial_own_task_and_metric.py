"""A task and a metric of the script's own: drive to a goal; how long that took."""
# pyright: reportArgumentType=false, reportCallIssue=false, reportAttributeAccessIssue=false, reportIncompatibleVariableOverride=false

from typing import Any

import numpy as np

from internutopia.core.config import Config, SimConfig, TaskCfg
from internutopia.core.config.task import MetricCfg, RewardCfg
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_to_point_cfg


class GoalTaskCfg(TaskCfg):
    type: str = 'GoalTask'
    goal: tuple[float, float, float]
    max_steps: int = 2000


class StepsToGoalCfg(MetricCfg):
    type: str = 'StepsToGoal'
    name: str = 'steps_to_goal'


GOALS = [(0.3, 0.0, 0.0), (0.6, 0.0, 0.0), (0.3, 0.3, 0.0)]
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=2,
    env_offset_size=10,
    task_configs=[
        GoalTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[JetbotRobotCfg(position=(0.0, 0.0, 0.0), controllers=[move_to_point_cfg])],
            goal=goal,
            metrics=[StepsToGoalCfg()],
            reward=RewardCfg(reward_type='Approach', reward_settings={'scale': 10.0}),
        )
        for goal in GOALS
    ],
)
print(config.model_dump_json(indent=4))
import_extensions()

from internutopia.core.scene.scene import IScene  # noqa: E402
from internutopia.core.task import BaseMetric, BaseTask  # noqa: E402
from internutopia.core.task.reward import BaseReward  # noqa: E402


@BaseTask.register('GoalTask')
class GoalTask(BaseTask):
    def __init__(self, config: GoalTaskCfg, scene: IScene):
        super().__init__(config, scene)
        self.goal = np.array(config.goal[:2])
        self.distance = np.inf

    def get_observations(self) -> dict[str, Any]:
        obs = super().get_observations()
        self.distance = float(np.linalg.norm(obs['jetbot']['position'][:2] - self.goal))
        obs['jetbot']['distance'] = self.distance
        return obs

    def is_done(self) -> bool:
        self.steps += 1
        return self.distance < 0.12 or self.steps >= self.config.max_steps


@BaseMetric.register('StepsToGoal')
class StepsToGoal(BaseMetric):
    def __init__(self, config: StepsToGoalCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        self.steps = 0

    def update(self, obs: dict[str, Any]) -> None:
        self.steps += 1

    def calc(self) -> dict[str, Any]:
        return {'steps': self.steps, 'env': self.env_id, 'goal': list(self.task_config.goal)}


@BaseReward.register('Approach')
class Approach(BaseReward):
    def init_setting(self):
        self.scale = self.settings['scale']

    def reset(self):
        self.state = None

    def _calc_next_state(self) -> None:
        self.state = self.task.distance

    def calc(self) -> float:
        before = self.state
        self._calc_next_state()
        return 0.0 if before is None else self.scale * (before - self.state)


env = Env(config)
_, infos = env.reset()
returns = [0.0] * 2
ended: dict[tuple[float, ...], float] = {}
while True:
    actions = [{'jetbot': {'move_to_point': [info.goal if info else (0.0, 0.0, 0.0)]}} for info in infos]
    obs, reward, terminated, _, _ = env.step(actions)
    over = [i for i, done in enumerate(terminated) if done and infos[i] is not None]
    for i, info in enumerate(infos):
        returns[i] += reward[i] if info else 0.0
    for i in over:
        start, end = float(np.linalg.norm(infos[i].goal)), obs[i]['jetbot']['distance']
        assert end < 0.12
        assert abs(returns[i] - 10.0 * (start - end)) < 0.05, (returns[i], start, end)  # but for its first step
        ended[tuple(infos[i].goal)] = returns[i]
        returns[i] = 0.0
    for i, info in zip(over, env.reset(env_ids=over)[1] if over else [], strict=True):
        infos[i] = info
    if not any(infos):
        break
assert sorted(ended) == sorted(GOALS)
env.close()
