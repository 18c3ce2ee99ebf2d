"""Built-in rewards against figures computed from what the robots did."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.config import RobotCfg
from internutopia.config.task import RewardCfg

Run = Callable[..., Any]
MakeBuiltin = Callable[..., RobotCfg]


def reward(name: str, **settings: Any) -> RewardCfg:
    return RewardCfg(reward_type=name, reward_settings=settings)


@pytest.mark.parametrize('goal', [(2.0, 1.0), (2.0, 1.0, 50.0), np.array([2.0, 1.0, 0.0])])
def test_progress_is_the_distance_gained_in_each_step(run: Run, make_builtin: MakeBuiltin, goal: Any) -> None:
    settings = reward('ProgressToGoalReward', robot_name='jetbot', goal=goal, scale=10.0)
    env = run(make_builtin('jetbot'), env_num=2, reward=settings)
    distances = [math.dist(obs['jetbot']['position'][:2], goal[:2]) for obs in env.get_observations()]
    rewards = [0.0, 0.0]
    for _ in range(20):
        actions = [{'jetbot': {'move_by_speed': [speed, 0.0]}} for speed in (0.5, -0.5)]
        obs, rewards, *_ = env.step(actions)
        for env_id in range(2):
            now = math.dist(obs[env_id]['jetbot']['position'][:2], goal[:2])
            assert rewards[env_id] == pytest.approx(10.0 * (distances[env_id] - now), abs=1e-5)
            distances[env_id] = now
    assert rewards[0] > 0 > rewards[1]


def test_progress_starts_anew_with_each_episode(run: Run, make_builtin: MakeBuiltin) -> None:
    settings = reward('ProgressToGoalReward', robot_name='jetbot', goal=(2.0, 0.0))
    env = run(make_builtin('jetbot'), episodes=2, reward=settings)
    drive = [{'jetbot': {'move_by_speed': [0.5, 0.0]}}]
    first = [env.step(drive)[1] for _ in range(5)]
    env.reset()
    assert [env.step(drive)[1] for _ in range(5)] == first


def test_effort_penalty_is_the_sum_of_squared_efforts(run: Run, make_builtin: MakeBuiltin) -> None:
    settings = reward('EffortPenaltyReward', robot_name='motor_arm', scale=0.5)
    env = run(make_builtin('motor_arm'), env_num=2, reward=settings)
    for controls in ([0.1, 0.2], [-0.3, 0.0]):
        _, rewards, *_ = env.step([{'motor_arm': {'actuators': controls}}, {}])
        # the second motor has a gear of 2
        assert rewards == pytest.approx([-0.5 * (controls[0] ** 2 + (2 * controls[1]) ** 2), 0.0])


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (reward('ProgressToGoalReward', goal=(1, 2)), 'robot_name'),
        (reward('ProgressToGoalReward', robot_name='jetbot'), 'goal'),
        (reward('ProgressToGoalReward', robot_name='jetbot', goal=(1,)), 'goal'),
        (reward('ProgressToGoalReward', robot_name='jetbot', goal=(1, 'far')), 'goal'),
        (reward('ProgressToGoalReward', robot_name='jetbot', goal=(1, math.nan)), 'goal'),
        (reward('ProgressToGoalReward', robot_name='jetbot', goal=(1, 2), scales=1), "'scales'; did you mean 'scale'"),
        (reward('ProgressToGoalReward', robot_name='jetbto', goal=(1, 2)), "robot 'jetbto'; did you mean 'jetbot'"),
        (reward('EffortPenaltyReward'), 'robot_name'),
        (reward('EffortPenaltyReward', robot_name='jetbot', scale='much'), 'scale'),
        (reward('EffortPenaltyReward', robot_name='h1'), "robot_name: the task has no robot 'h1'"),
    ],
)
def test_wrong_settings_are_named(run: Run, make_builtin: MakeBuiltin, settings: RewardCfg, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(make_builtin('jetbot'), reward=settings)
