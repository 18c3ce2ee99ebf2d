"""`VectorEnv` against Gymnasium's own `SyncVectorEnv` around single envs of both APIs, step by step.

Around `rl.SingleEnv` all is compared, bit for bit; around `core.gym_env.Env`, which has dicts, and ends and rewards of
its task's classes, all that both tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from internutopia.config import Config, RewardCfg, TaskCfg
from internutopia.config.learning import RewardTermCfg
from internutopia.core.gym_env import Env
from internutopia.core.task import BaseReward, BaseTask
from internutopia.rl import SingleEnv, VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.learning_tasks import cart_pole

import_extensions()

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED]
REWARD_TOLERANCE = 1e-6  # relative: terms are float32, `BaseReward` is float64
DT = 0.02  # length of a step of the cart-pole [s]

# What one call of `reset` or `step` gave; a reset has no rewards and no ends
Outcome = tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]


@BaseTask.register('FallingPole')
class FallingPole(BaseTask):
    """Done when the pole leans by more than 0.2 rad: what a term says to `VectorEnv`."""

    def is_done(self) -> bool:
        return bool(abs(self.robots['cart_pole'].articulation.get_joint_positions()[1]) > 0.2)


@BaseReward.register('CalmPole')
class CalmPole(BaseReward):
    """As the terms of `carts`."""

    def calc(self) -> float:
        self._calc_next_state()
        return DT * (1.0 - 0.1 * float(np.square(self.state).sum()))

    def _calc_next_state(self) -> None:
        self.state = self.task.robots['cart_pole'].articulation.get_joint_velocities()


def carts(env_num: int, order: Any, limits: list[int]) -> Config:
    """Cart-poles with one task per time limit, each on a rail of another slope, so that no two episodes are alike."""
    config = cart_pole.config(env_num, 0, start=0.0, threads=1)
    (task,) = config.task_configs
    assert task.learning is not None
    rewards = [*task.learning.rewards, RewardTermCfg(term='joint_velocity_cost', weight=-0.1)]
    learning = task.learning.update(rewards=rewards, randomizations=[])
    (robot,) = task.robots
    tasks = []
    for index, limit in enumerate(limits):
        half = 0.01 * index  # rad
        sloping = robot.update(orientation=(float(np.cos(half)), 0.0, float(np.sin(half)), 0.0))
        tasks.append(task.update(robots=[sloping], learning=learning, max_episode_steps=limit))
    return config.update(task_configs=tasks, episode_order=order)


def with_own_classes(task: TaskCfg) -> TaskCfg:
    """The same task for `gym_env.Env`, which knows no terms."""
    return task.update(type='FallingPole', learning=None, reward=RewardCfg(reward_type='CalmPole'))


class ZerosAtTheEnd(gym.Wrapper):
    """Zeros where `gym_env.Env` has no episode left: Gymnasium cannot put None into an array."""

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        obs, info = self.env.reset(**kwargs)
        return (obs, info) if obs is not None else (self._nothing(), {})

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return (self._nothing(), 0.0, False, False, {}) if obs is None else (obs, reward, terminated, truncated, info)

    def _nothing(self) -> Any:
        return {key: 0 * value for key, value in self.observation_space.sample().items()}


def play(envs: gym.vector.VectorEnv, actions: list[Any], mode: AutoresetMode, seed: int | None = None) -> list[Outcome]:
    """All that was returned; without autoreset, what ended is reset after the step."""
    rest = np.zeros(envs.num_envs), np.zeros(envs.num_envs, bool), np.zeros(envs.num_envs, bool)
    obs, info = envs.reset(seed=seed)
    seen: list[Outcome] = [(obs, *rest, info)]
    for action in actions:
        obs, rewards, terminated, truncated, info = envs.step(action)
        seen.append((obs, rewards, terminated, truncated, info))
        ended = terminated | truncated
        if mode is AutoresetMode.DISABLED and ended.any():
            obs, info = envs.reset(options={'reset_mask': ended})
            seen.append((obs, *rest, info))
    return seen


def pushes(steps: int, env_num: int) -> np.ndarray:
    """Actions that tip poles at different times, and none at all in env 0."""
    actions = np.random.default_rng(0).uniform(-0.4, 1.0, (steps, env_num, 1)).astype(np.float32)
    actions[:, 0] = 0.0
    return actions


@pytest.mark.slow
@pytest.mark.parametrize('mode', MODES)
def test_around_single_env(mode: AutoresetMode) -> None:
    actions = list(pushes(120, 4))
    envs = VectorEnv(carts(4, 'cycle', [30]), autoreset_mode=mode)
    twin = SyncVectorEnv([lambda: SingleEnv(carts(1, 'cycle', [30]))] * 4, autoreset_mode=mode)
    assert envs.metadata['autoreset_mode'] is twin.metadata['autoreset_mode'] is mode
    ends = np.zeros(2, int)
    for got, expected in zip(play(envs, actions, mode, seed=0), play(twin, actions, mode, seed=0), strict=True):
        for one, other in zip(got[:4], expected[:4], strict=True):
            np.testing.assert_array_equal(one, other)
        info, twin_info = got[4], expected[4]
        assert ('final_obs' in info) == ('final_obs' in twin_info)
        ended = got[2] | got[3]
        ends += got[2].sum(), got[3].sum()
        if mode is AutoresetMode.SAME_STEP and ended.any():
            for key in ('_final_obs', '_final_info'):
                np.testing.assert_array_equal(info[key], twin_info[key])
            for env_id in np.flatnonzero(ended):
                np.testing.assert_array_equal(info['final_obs'][env_id], twin_info['final_obs'][env_id])
            info, twin_info = info['final_info'], twin_info['final_info']
        if ended.any():
            np.testing.assert_allclose(info['episode_return'][ended], twin_info['episode_return'][ended])
            np.testing.assert_array_equal(info['episode_length'][ended], twin_info['episode_length'][ended])
            np.testing.assert_array_equal(info['_episode_length'], twin_info['_episode_length'])
    assert (ends >= 3).all()
    envs.close()
    twin.close()


def array_of(obs: dict[str, np.ndarray]) -> np.ndarray:
    """What `VectorEnv` shows of an observation of `gym_env.Env`."""
    return np.concatenate([obs['joint_positions'], obs['joint_velocities']], axis=-1)


def check_same(got: Outcome, expected: Outcome, episodes: list[list[int]]) -> None:
    """Compares what both sides tell; `episodes` are the ids of those of each env, in their order."""
    obs, rewards, terminated, truncated, info = got
    twin_obs, twin_rewards, twin_terminated, twin_truncated, twin_info = expected
    np.testing.assert_array_equal(obs, array_of(twin_obs))
    np.testing.assert_allclose(rewards, twin_rewards, rtol=REWARD_TOLERANCE)
    np.testing.assert_array_equal(terminated, twin_terminated)
    np.testing.assert_array_equal(truncated, twin_truncated)
    assert ('final_obs' in info) == ('final_obs' in twin_info)
    if 'final_obs' in info:
        np.testing.assert_array_equal(info['_final_obs'], terminated | truncated)
        np.testing.assert_array_equal(info['_final_obs'], twin_info['_final_obs'])
        for env_id in np.flatnonzero(info['_final_obs']):
            np.testing.assert_array_equal(info['final_obs'][env_id], array_of(twin_info['final_obs'][env_id]))
        check_ids(info['final_info'], twin_info['final_info'], episodes)
    check_ids(info, twin_info, episodes)


def check_ids(info: dict[str, Any], twin_info: dict[str, Any], episodes: list[list[int]]) -> None:
    """`gym_env.Env` numbers the episodes of its own queue, and tells it in steps only."""
    for env_id in np.flatnonzero(twin_info.get('_episode_id', ())):
        assert info['_episode_id'][env_id]
        assert info['episode_id'][env_id] == episodes[env_id][twin_info['episode_id'][env_id]]


def gym_envs(config: Config, episodes: list[list[int]]) -> list[Callable[[], gym.Env]]:
    """Makers of one `gym_env.Env` per env, with these episodes of the config in its own queue."""
    tasks = [with_own_classes(task) for task in config.task_configs]

    def maker(ids: list[int]) -> Callable[[], gym.Env]:
        own = [tasks[episode_id % len(tasks)] for episode_id in ids]
        return lambda: ZerosAtTheEnd(Env(config.update(env_num=1, task_configs=own)))

    return [maker(ids) for ids in episodes]


@pytest.mark.parametrize('order', ['cycle', 'once'])
@pytest.mark.parametrize('mode', MODES)
def test_around_gym_env(mode: AutoresetMode, order: str) -> None:
    config = carts(3, order, [25, 12, 17, 30, 9, 21, 14])
    actions = pushes(90, 3)
    envs = VectorEnv(config, autoreset_mode=mode)
    seen = play(envs, list(actions), mode)
    ids = np.stack([info['episode_id'] for *_, info in seen])
    # the envs share one queue: those that are ready first get the next episodes
    episodes = [[int(i) for i in dict.fromkeys(column.tolist()) if i >= 0] for column in ids.T]
    twin = SyncVectorEnv(gym_envs(config, episodes), autoreset_mode=mode)
    expected = play(twin, [{'actuators': action} for action in actions], mode)
    for one, other in zip(seen, expected, strict=True):
        check_same(one, other, episodes)
    active = np.stack([info['active'] for *_, info in seen])
    np.testing.assert_array_equal(active, ids >= 0)
    assert sum(terminated.sum() for _, _, terminated, _, _ in seen) > 1
    assert sum(truncated.sum() for _, _, _, truncated, _ in seen) > 1
    assert active.all() == (order == 'cycle')
    if order == 'once':
        assert sorted(sum(episodes, [])) == list(range(7)) and not active[-1].any()
        assert active.any(axis=1).sum() > active.all(axis=1).sum() > 10, 'some envs run out before others'
    envs.close()
    twin.close()


@pytest.mark.parametrize('mode', MODES)
def test_gymnasium_has_no_row_for_an_env_without_an_episode(mode: AutoresetMode) -> None:
    config = carts(1, 'once', [2])
    config = config.update(task_configs=[with_own_classes(task) for task in config.task_configs])
    twin = SyncVectorEnv([lambda: Env(config)], autoreset_mode=mode)
    with pytest.raises((AttributeError, TypeError)):
        play(twin, [{'actuators': np.zeros((1, 1), np.float32)}] * 3, mode)
    twin.close()
