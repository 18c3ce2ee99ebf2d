"""Gymnasium env: spaces, gymnasium's own checks and vector envs, episodes, errors."""

from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from internutopia.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots import jetbot
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

import_extensions()

CONTROLLERS = [jetbot.move_by_speed_cfg, jetbot.move_to_point_cfg, jetbot.move_along_path_cfg, jetbot.rotate_cfg]


@pytest.fixture(scope='session')
def robot() -> JetbotRobotCfg:
    return JetbotRobotCfg(controllers=CONTROLLERS)


@pytest.fixture
def make_env(backend: dict[str, Any], robot: JetbotRobotCfg) -> Iterator[Callable[..., Env]]:
    """Makes an Env of a jetbot on an empty floor; closed after the test."""
    envs: list[Env] = []

    def make(tasks: int = 1, order: Any = 'cycle', robots: Any = None, **fields: Any) -> Env:
        robots = [robot] if robots is None else robots
        task = FiniteStepTaskCfg(max_steps=20, scene_asset_path='scenes/empty.usd', robots=robots)
        config = Config(
            simulator=SimConfig(physics_dt='1/240', **backend),
            metrics_save_path=None,
            episode_order=order,
            task_configs=[task] * tasks,
            **fields,
        )
        envs.append(Env(config))
        return envs[-1]

    yield make
    for env in envs:
        env.close()


@pytest.fixture
def env(make_env: Callable[..., Env]) -> Env:
    return make_env(tasks=2, order='once')


@pytest.mark.filterwarnings('ignore')  # check_env recommends other action ranges
def test_gymnasiums_own_check_passes(make_env):
    check_env(make_env(), skip_render_check=True)


@pytest.mark.parametrize('vector', [gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv])
def test_gymnasiums_vector_envs_run_it(vector, make_env):
    envs = vector([make_env] * 2)
    obs, _ = envs.reset(seed=1)
    assert obs['position'].shape == (2, 3)
    ends = 0
    for _ in range(25):
        obs, _, terminated, _, _ = envs.step(envs.action_space.sample())
        ends += terminated.sum()
    assert ends == 2 and np.isfinite(obs['joint_velocities']).all()
    envs.close()


def test_spaces_come_from_the_robot(env):
    assert set(env.action_space.keys()) == {'move_by_speed', 'move_to_point', 'move_along_path', 'rotate'}
    assert env.observation_space['joint_positions'] == spaces.Box(-np.inf, np.inf, (2,))
    obs, _ = env.reset()
    assert obs in env.observation_space
    for _ in range(3):
        obs, *_ = env.step(env.action_space.sample())
        assert obs in env.observation_space


def test_episodes_follow_each_other_and_end(env):
    obs, info = env.reset()
    assert info == {'task_config': env.active_task_configs[0]} and obs['position'].dtype == np.float32
    terminated = [env.step({'move_by_speed': [0.5, 0.0]})[2] for _ in range(20)]
    assert terminated == [False] * 19 + [True]
    obs, _ = env.reset()
    np.testing.assert_array_equal(obs['position'], [0, 0, 0])
    assert env.reset() == (None, None)
    assert env.finished() and not env.simulation_app.is_running()
    assert env.step({}) == (None, None, None, None, None)


def test_reset_in_the_middle_goes_on_to_the_next_episode(env):
    env.reset()
    env.step({})
    env.reset()
    assert env.step({})[4]['episode_id'] == 1


def test_same_seed_same_episodes(make_env, assert_same):
    env = make_env(tasks=3, order='shuffle')
    for task in env._env.config.task_configs:
        assert task.max_episode_steps is None
    runs = []
    for _ in range(2):
        env.reset(seed=7)
        runs.append([env.step({'move_by_speed': [0.3, 1.0]})[0]['position'] for _ in range(5)])
    assert_same(runs[0], runs[1])


def test_a_task_without_a_robot_runs(make_env):
    env = make_env(robots=[])
    assert env.reset()[0] == {} and env.step({})[0] == {}


def test_one_env_and_one_robot_only(make_env, robot):
    with pytest.raises(ValueError, match='env_num=2; use vec_env.Env'):
        make_env(env_num=2)
    with pytest.raises(ValueError, match=r'task_configs\[0\] has 2'):
        make_env(robots=[robot, robot.update(name='second')])


def test_a_wrong_action_names_env_robot_and_controller(env):
    env.reset()
    with pytest.raises(KeyError, match="'jetbot' has no controller 'move_by_sped'; did you mean 'move_by_speed'"):
        env.step({'move_by_sped': [0, 0]})
    with pytest.raises(ValueError, match="robot 'jetbot', controller 'rotate'"):
        env.step({'rotate': [[1, 0, 0]]})
