"""Robots that stand still although they are told to move, in what `info` says of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.config import Config, ControllerCfg, SimConfig
from internutopia.config.learning import ActionCfg, LearningCfg, ObservationTermCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg, move_to_point_cfg

import_extensions()

WALL = """<worldbody><geom type="plane" size="0 0 1"/><geom type="box" size="0.1 2 1" pos="0.3 0 1"/></worldbody>"""
STEP = 4 / 240  # s


@pytest.fixture
def start(make_env: Callable[..., Env], make_task: Any, write_model: Any) -> Callable[..., Env]:
    """Two Jetbots: that of env 0 faces a wall, that of env 1 has it behind."""

    def start(*controllers: ControllerCfg) -> Env:
        scene = write_model('wall', WALL)
        robots = [
            JetbotRobotCfg(position=(0, 0, 0.03), orientation=turned, controllers=list(controllers))
            for turned in ((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        ]
        tasks = [make_task(scene, robots=[robot], max_steps=999) for robot in robots]
        env = make_env(tasks=tasks * 3, env_num=2, sim={'physics_dt': STEP / 4, 'substeps': 4})
        env.reset()
        return env

    return start


def drive(env: Env, seconds: float, **action: Any) -> list[Any]:
    info: list[Any] = []
    for _ in range(round(seconds / STEP)):
        *_, info = env.step([{'jetbot': action}] * 2)
    return [each.get('stuck') for each in info]


def test_who_does_not_get_on_is_stuck(start: Callable[..., Env]) -> None:
    env = start(move_by_speed_cfg)
    assert drive(env, 2.0, move_by_speed=[0.5, 0.0]) == [None, None]  # told to go 1 m, of which it could go 0.1 m
    assert drive(env, 1.0, move_by_speed=[0.5, 0.0]) == [['jetbot'], None]
    state = env.get_state()
    assert drive(env, STEP, move_by_speed=[0.0, 0.0]) == [None, None]  # nobody wants it to move
    env.set_state(state)
    assert drive(env, STEP, move_by_speed=[0.5, 0.0]) == [['jetbot'], None]
    assert drive(env, 1.5, move_by_speed=[-0.5, 0.0])[0] is None  # away from the wall
    env.reset()
    assert drive(env, 1.0, move_by_speed=[0.5, 0.0]) == [None, None]
    env.reset()
    assert drive(env, 0.3, move_by_speed=[100.0, 0.0]) == [None, None]  # nobody is as fast


def test_commands_of_other_controllers_count(start: Callable[..., Env]) -> None:
    env = start(move_to_point_cfg)
    assert drive(env, 4.0, move_to_point=[np.array([3.0, 0.0, 0.0])])[0] == ['jetbot']


@pytest.mark.slow
def test_arrays_say_the_same_of_all_envs(start: Callable[..., Env]) -> None:
    learning = LearningCfg(
        action=ActionCfg(controller='move_by_speed'), observations=[ObservationTermCfg(term='last_action')]
    )
    facing, away = start(move_by_speed_cfg).config.task_configs[:2]
    tasks = [facing.update(max_episode_steps=180), away.update(max_episode_steps=999)]
    config = Config(env_num=2, task_configs=tasks, simulator=SimConfig(physics_dt=STEP / 4, substeps=4))
    ahead = np.full((2, 2), [0.5, 0.0])
    for mode in ('NextStep', 'SameStep'):
        envs = VectorEnv(config.update(episode_order='cycle', metrics_save_path=None), learning, autoreset_mode=mode)
        envs.reset()
        infos = [envs.step(ahead)[-1] for _ in range(200)]
        assert not any('stuck' in info for info in (*infos[:120], *infos[180:]))  # 2 s for 1 m; then the next episode
        assert infos[170]['stuck'].tolist() == infos[170]['_stuck'].tolist() == [True, False]
        assert infos[179]['stuck'].tolist() == [True, False]  # of the step in which the episode ends
        envs.close()


def test_without_a_command_nobody_is_stuck(start: Callable[..., Env]) -> None:
    env = start(move_by_speed_cfg)
    info: list[Any] = []
    for _ in range(240):
        *_, info = env.step([None, {}])
    assert all('stuck' not in each for each in info)


def test_a_class_may_say_so_without_controllers(
    make_env: Callable[..., Env], make_task: Any, make_robot: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wedged(BaseRobot.robots['ToyRobot']):
        def find_stuck(self) -> bool:
            return True

    monkeypatch.setitem(BaseRobot.robots, 'Wedged', Wedged)
    env = make_env(tasks=[make_task(robots=[make_robot(type='Wedged', controllers=[])])], env_num=1)
    env.reset()
    assert env.step([None])[4][0]['stuck'] == ['arm']
