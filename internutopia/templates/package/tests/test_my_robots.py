"""Tests of the package on real physics: motion of the robot, end of the task, rewards."""

import gymnasium
import numpy as np
import pytest

from internutopia import Config, Env, SimConfig, VectorEnv, list_tasks
from my_robots import import_extensions
from my_robots.configs import GlideControllerCfg, LiftCfg, LiftTaskCfg
from my_robots.learning_tasks import config

SIMULATOR = SimConfig(physics_dt=1 / 250, substeps=5)  # a step is 0.02 s


@pytest.fixture(scope='session', autouse=True)
def extensions():
    import_extensions()


def test_the_faster_lift_is_up_first():
    task = LiftTaskCfg(robots=[LiftCfg(controllers=[GlideControllerCfg()])], goal=0.4, max_episode_steps=200)
    env = Env(Config(simulator=SIMULATOR, env_num=2, task_configs=[task] * 2, metrics_save_path='none'))
    env.reset()
    steps = {}
    while env.simulation_app.is_running():
        _, _, terminated, _, info = env.step([{'lift': {'glide': [0.4]}}, {'lift': {'glide': [0.2]}}])
        for env_id in range(2):
            if terminated[env_id] and env_id not in steps:
                steps[env_id] = info[env_id]['step']
    env.close()
    # 0.4 m at 0.4 and 0.2 m/s are 50 and 100 steps; the drive lags behind
    assert 50 <= steps[0] < 65 and 100 <= steps[1] < 115


def test_actions_that_are_none_are_refused():
    task = LiftTaskCfg(robots=[LiftCfg(controllers=[GlideControllerCfg()])])
    env = Env(Config(simulator=SIMULATOR, task_configs=[task], metrics_save_path='none'))
    env.reset()
    with pytest.raises(ValueError, match=r"robot 'lift', controller 'glide'.* \(speed\)"):
        env.step([{'lift': {'glide': [0.1, 0.2]}}])
    env.close()


def test_holding_the_height_is_paid():
    envs = VectorEnv(config(num_envs=4, seed=0, threads=1), autoreset_mode='Disabled')
    obs, _ = envs.reset()
    assert obs.shape == (4, 1) and (obs > 0.0).all()  # the platform is below the height that is wanted
    for _ in range(150):
        obs, *_ = envs.step(np.clip(2.0 * obs, -1.0, 1.0))
    obs, reward, *_ = envs.step(np.zeros((4, 1), np.float32))
    envs.close()
    error = np.abs(obs[:, 0]) / 5.0  # m
    assert error.max() < 0.05
    assert reward == pytest.approx(0.02 * (1.0 - error / 0.2), abs=1e-6)  # a rate, times 0.02 s


def test_the_id_is_known():
    assert 'MyRobots/Lift-v0' in list_tasks()
    env = gymnasium.make('MyRobots/Lift-v0', threads=1)
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    env.close()
