"""Classes of the user's own in workers: from the main script, and from a module that goes along in `working_dir`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ray_toys import PATIENCE

pytestmark = [pytest.mark.xdist_group('ray'), pytest.mark.slow]

MODULE = """
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController


@BaseController.register('Lift')
class Lift(BaseController):
    def action_to_control(self, action, env_ids=...):
        return ArticulationAction(joint_positions=[action, -action])
"""

SCRIPT = """
import sys

import numpy as np

from internutopia.config import Config, ControllerCfg, MetricCfg, RewardCfg, RobotCfg, SimConfig, TaskCfg
from internutopia.config.config import RayDistributionCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.task import BaseMetric, BaseReward, BaseTask
from internutopia.core.vec_env import Env

sys.path.insert(0, 'package')
import lifting

LIMIT = 3


class Goal:
    def __init__(self, value):
        self.value = value


@BaseRobot.register('OwnArm')
class OwnArm(BaseRobot):
    pass


class OwnTaskCfg(TaskCfg):
    type: str | None = 'OwnTask'
    goal: Goal | None = None


@BaseTask.register('OwnTask')
class OwnTask(BaseTask):
    def is_done(self):
        self.steps += 1
        return self.steps >= LIMIT


@BaseReward.register('OwnReward')
class OwnReward(BaseReward):
    def calc(self):
        return self.task.config.goal.value * self.task.steps

    def _calc_next_state(self):
        pass


@BaseMetric.register('OwnMetric')
class OwnMetric(BaseMetric):
    def update(self, obs):
        self.seen = float(obs['arm']['joint_positions'][0])

    def calc(self):
        return self.seen


def run(config):
    env = Env(config)
    env.reset()
    steps = [env.step([{'arm': {'lift': 0.1 * k}}] * env.num_envs) for k in range(LIMIT)]
    env.close()
    return repr(steps)


lift = ControllerCfg(name='lift', type='Lift')
arm = RobotCfg(name='arm', type='OwnArm', prim_path='/arm', usd_path=ARM, controllers=[lift])
task = OwnTaskCfg(
    robots=[arm],
    goal=Goal(2.5),
    reward=RewardCfg(reward_type='OwnReward'),
    metrics=[MetricCfg(name='own', type='OwnMetric', metric_config={})],
)
config = Config(simulator=SimConfig(physics_dt='1/200'), env_num=2, metrics_save_path='none', task_configs=[task] * 2)
try:
    Env(config.update(env_num=1).distribute(RayDistributionCfg(proc_num=2)))
except ImportError as error:
    assert "a worker cannot import 'lifting', where classes of this run are registered" in str(error), error
    assert 'working_dir' in str(error), error
else:
    raise AssertionError('the module was not there')
distributed = config.update(env_num=1).distribute(RayDistributionCfg(proc_num=2, working_dir='package'))
here, there = run(config), run(distributed)
assert here == there, (here, there)
assert '7.5, ' in there and "'own': " in there, there
"""


def test_classes_of_the_script_and_of_a_module_sent_along(cluster, models, tmp_path: Path):
    import ray

    (tmp_path / 'package').mkdir()
    (tmp_path / 'package' / 'lifting.py').write_text(MODULE)
    (tmp_path / 'script.py').write_text(SCRIPT.replace('ARM', repr(models['arm'])))
    environment = {**os.environ, 'RAY_ADDRESS': ray.get_runtime_context().gcs_address}
    result = subprocess.run(
        [sys.executable, tmp_path / 'script.py'],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.returncode == 0, result.stderr
