"""Envs that are evaluated together, by the batched forms of their tasks, metrics and rewards, against one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from internutopia.config import Config, SimConfig, TaskCfg
from internutopia.config.task import RewardCfg
from internutopia.core.observations import Observation
from internutopia.core.task import BaseMetric, BaseReward, BaseTask
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.metrics import TraveledDistanceMetricCfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg
from internutopia_extension.metrics import TraveledDistanceMetric
from internutopia_extension.rewards import EffortPenaltyReward, ProgressToGoalReward
from internutopia_extension.robots.jetbot import JetbotRobot
from internutopia_extension.tasks import FiniteStepTask

JETBOT = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg])
STEPS = [4, 2, 6]  # of the envs' first episodes
GOAL = {'robot_name': 'jetbot', 'goal': (3.0, 1.0)}


@pytest.fixture(autouse=True)
def classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register classes of this module for one test."""
    import_extensions()
    for base in (BaseTask.tasks, BaseMetric.metrics, BaseReward.rewards):
        for name, value in list(base.items()):
            monkeypatch.setitem(base, name, value)  # put back whatever a test registers


def config(reward: str, scale: float = 1.0, **changes: Any) -> Config:
    """Return a config of three envs whose episodes end at different steps, by the task, and one by its time limit."""
    settings = (GOAL if reward == 'ProgressToGoalReward' else {'robot_name': 'jetbot'}) | {'scale': scale}
    tasks: list[TaskCfg] = [
        FiniteStepTaskCfg(
            robots=[JETBOT],
            max_steps=steps,
            max_episode_steps=3 if index == 2 else None,
            metrics=[TraveledDistanceMetricCfg(name='distance', robot_name='jetbot')],
            reward=RewardCfg(reward_type=reward, reward_settings=settings),
        )
        for index, steps in enumerate([*STEPS, 5])
    ]
    simulator = SimConfig(physics_dt=1 / 60)
    return Config(simulator=simulator, env_num=3, metrics_save_path='none', task_configs=tasks, **changes)


def run(env: Env) -> Iterator[Any]:
    """Yield what a run returns, in which one env is reset while others go on."""
    env.reset()
    for k in range(7):
        actions = [{'jetbot': {'move_by_speed': [0.3 + 0.1 * env_id, 0.2 * k]}} for env_id in range(3)]
        obs, *rest = env.step(actions)
        yield [obs if each is None else dict(each) for each in obs], *rest
        if k == 2:
            env.reset([1])
    env.close()


def one_by_one() -> None:
    """Give the built-in task subclasses without batched forms the place of the built-in ones."""

    class OneByOne(FiniteStepTask):
        def is_done(self) -> bool:
            return super().is_done()

    BaseTask.register('FiniteStepTask')(OneByOne)


@pytest.mark.parametrize('compat', ['3.x', '2.x'])
@pytest.mark.parametrize('reward', ['ProgressToGoalReward', 'EffortPenaltyReward'])
def test_results_are_the_same_to_the_bit_as_one_by_one(reward: str, compat: str) -> None:
    together = list(run(Env(config(reward, 2.0, compat=compat))))
    one_by_one()
    for mine, its in zip(together, run(Env(config(reward, 2.0, compat=compat))), strict=True):
        np.testing.assert_equal(mine, its)
    *_, terminated, truncated, infos = together[3]
    assert (terminated, truncated) == ([True, False, False], [False, False, True])
    assert infos[1]['step'] == 1 and 'metrics' in infos[0] and 'metrics' in infos[2]
    assert together[0][1][0] != 0.0


def test_batched_forms_are_called_once_and_nobody_opens_the_observations(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int]] = []
    for cls, name in (
        (FiniteStepTask, 'are_done'),
        (TraveledDistanceMetric, 'update_all'),
        (ProgressToGoalReward, 'calc_all'),
    ):
        form = getattr(cls, name).__func__

        def counted(cls: type, members: Sequence[Any], *more: Any, form: Any = form, name: str = name) -> Any:
            calls.append((name, len(members)))
            return form(cls, members, *more)

        monkeypatch.setattr(cls, name, classmethod(counted))
    env = Env(config('ProgressToGoalReward'))
    env.reset()
    obs = env.step([None] * 3)[0]
    assert calls == [('are_done', 3), ('update_all', 3), ('calc_all', 3)]
    assert [type(each) for each in obs] == [Observation] * 3
    env.close()


def test_a_class_that_overrides_one_env_is_called_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    updated: list[BaseMetric] = []

    @BaseMetric.register('TraveledDistanceMetric')
    class Noted(TraveledDistanceMetric):
        def update(self, obs: dict[str, Any]) -> None:
            super().update(obs)
            updated.append(self)

    @BaseReward.register('EffortPenaltyReward')
    class Constant(EffortPenaltyReward):
        def calc(self) -> float:
            return 5.0

    env = Env(config('EffortPenaltyReward'))
    env.reset()
    assert env.step([None] * 3)[1] == [5.0] * 3
    assert updated == [task.metrics['distance'] for task in env.runner.current_tasks.values()]
    env.close()


def test_envs_of_both_kinds_are_observed_once_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    @BaseTask.register('Patient')
    class Patient(FiniteStepTask):
        def is_done(self) -> bool:
            return False

    expected = list(run(Env(config('ProgressToGoalReward'))))
    mixed = config('ProgressToGoalReward')
    mixed.task_configs[1] = mixed.task_configs[1].model_copy(update={'type': 'Patient'})
    observed: list[None] = []
    get_obs = JetbotRobot.get_obs
    monkeypatch.setattr(JetbotRobot, 'get_obs', lambda robot: (observed.append(None), get_obs(robot))[1])
    env = Env(mixed)
    env.reset()
    observed.clear()
    obs = env.step([{'jetbot': {'move_by_speed': [0.3 + 0.1 * env_id, 0.0]}} for env_id in range(3)])[0]
    assert len(observed) == 1
    np.testing.assert_equal([dict(each) for each in obs], expected[0][0])
    env.close()


@pytest.mark.parametrize(
    ('given', 'message'),
    [([1.0, np.nan, 2.0], 'env 1.*calc_all.*nan'), ([1.0, 2.0], 'env 0.*calc_all.*each of 3 envs')],
)
def test_rewards_that_are_no_finite_number_for_each_env_are_refused(given: list[float], message: str) -> None:
    @BaseReward.register('EffortPenaltyReward')
    class Wrong(EffortPenaltyReward):
        def calc(self) -> float:
            return 0.0

        @classmethod
        def calc_all(cls, rewards: Sequence[Any]) -> list[float]:
            return given

    env = Env(config('EffortPenaltyReward'))
    env.reset()
    with pytest.raises(ValueError, match=message):
        env.step([None] * 3)
    env.close()


def test_ends_for_another_number_of_envs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FiniteStepTask, 'are_done', classmethod(lambda cls, tasks: np.zeros(1, bool)))
    env = Env(config('ProgressToGoalReward'))
    env.reset()
    with pytest.raises(ValueError, match=r'FiniteStepTask\.are_done: got \(1,\), expected \(3,\)'):
        env.step([None] * 3)
    env.close()


def test_what_a_user_does_to_the_returned_lists_changes_no_later_result() -> None:
    env = Env(config('ProgressToGoalReward'))
    env.reset()
    env.step([None] * 3)
    columns = env.step([None] * 3)  # env 1 ends
    obs, info = dict(columns[0][1]), dict(columns[4][1])
    for column in columns:
        column[:] = [None] * 3
    again = env.step([None] * 3)
    np.testing.assert_equal(dict(again[0][1]), obs)
    assert [column[1] for column in again[1:]] == [0.0, True, False, info]
    assert [each['step'] for each in again[4]] == [3, 2, 3]
    env.close()
