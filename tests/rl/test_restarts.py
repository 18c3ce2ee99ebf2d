"""Restarts of a learner's envs: they go on with the objects that they have, and it makes no difference."""

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from internutopia.config import Config
from internutopia.core.robot.robot import BaseRobot
from internutopia.rl import VectorEnv
from internutopia_extension.learning_tasks import cart_pole, navigation
from internutopia_extension.robots.generic import GenericRobot
from internutopia_extension.tasks import SimpleInferenceTask

STARTS: list[str] = []


@SimpleInferenceTask.register('TaskThatStarts')
class TaskThatStarts(SimpleInferenceTask):
    """Has code of its own for the start of an episode, so that each gets a new one."""

    def post_reset(self) -> None:
        super().post_reset()
        STARTS.append(self.name)


@BaseRobot.register('RobotThatStarts')
class RobotThatStarts(GenericRobot):
    batched = True

    def post_reset(self) -> None:
        super().post_reset()
        STARTS.append(self.name)


def of_type(config: Config, name: str) -> Config:
    return config.update(task_configs=[task.update(type=name) for task in config.task_configs])


def play(config: Config, steps: int, **options: Any) -> list[np.ndarray]:
    """All observations, of walks with restarts at different times."""
    envs = VectorEnv(config, autoreset_mode=AutoresetMode.DISABLED, **options)
    shape = envs.action_space.shape
    assert shape is not None
    rng = np.random.default_rng(0)
    seen = [envs.reset(seed=0)[0].copy()]
    for step in range(steps):
        obs, _, terminated, truncated, _ = envs.step(rng.uniform(-1, 1, shape).astype(np.float32))
        seen.append(obs.copy())
        mask = terminated | truncated | (np.arange(len(obs)) == step % (2 * len(obs)))
        if mask.any():
            seen.append(envs.reset(options={'reset_mask': mask})[0].copy())
    envs.close()
    return seen


@pytest.mark.slow
def test_episodes_are_the_same_with_new_objects_and_with_those_that_are_there() -> None:
    """A walking controller has much to forget: what it did, when it acts again, where it is in its gait."""
    config = navigation.config(3, 0, robot='aliengo', max_episode_steps=3, threads=1)
    for got, expected in zip(play(config, 8), play(of_type(config, 'TaskThatStarts'), 8), strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize('what', ['task', 'robot'])
def test_classes_with_a_start_of_their_own_start_every_episode(what: str) -> None:
    config = cart_pole.config(2, 0, max_episode_steps=2, threads=1)
    (task,) = config.task_configs
    if what == 'task':
        task = task.update(type='TaskThatStarts')
    else:
        task = task.update(robots=[task.robots[0].update(type='RobotThatStarts')])
    envs = VectorEnv(config.update(task_configs=[task]), autoreset_mode=AutoresetMode.SAME_STEP)
    envs.reset(seed=0)
    STARTS.clear()
    for _ in range(4):
        envs.step(np.zeros((2, 1), np.float32))
    envs.close()
    assert len([name for name in STARTS if name != 'cart_pole']) == 2 * 2  # but for the batched robot
