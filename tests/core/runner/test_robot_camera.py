"""Cameras that follow a robot."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.core.runner.env_cameras import EnvCameras
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg

import_extensions()
SIZE = 64, 48
FLOOR = '<geom type="plane" size="0 0 1"/>'
WALL = '<geom type="box" size="3 0.01 3" pos="0 -0.2 3"/>'  # to the right of the robot, where the camera would stand
OTHER = '<geom type="box" size="3 0.01 3" pos="0 0.2 3"/>'


@pytest.fixture
def start(make_env: Callable[..., Env], make_task: Any, write_model: Any) -> Callable[..., Env]:
    def start(*things: str) -> Env:
        scene = write_model(f'scene{len(things)}', f'<worldbody>{"".join(things)}</worldbody>')
        robot = JetbotRobotCfg(position=(0.5, 0, 0.03), controllers=[move_by_speed_cfg])
        env = make_env(tasks=[make_task(scene, robots=[robot], max_steps=99)], env_num=1)
        env.reset()
        return env

    return start


def test_a_box_around_a_robot(start: Callable[..., Env]) -> None:
    env = start(FLOOR)
    low, high = env.runner.world.articulation('jetbot', 0).box(0)
    world: Any = env.runner.world
    model, data = world.model(0), world.data(0)
    centres = data.geom_xpos[(model.geom_bodyid > 0) & (model.geom_group < 3)]
    assert (low <= centres.min(axis=0)).all() and (high >= centres.max(axis=0)).all()
    assert low[2] == pytest.approx(0.0, abs=0.005)  # the wheels
    assert ((high - low) > 0.1).all() and ((high - low) < 0.25).all()


def test_it_follows(start: Callable[..., Env]) -> None:
    env = start(FLOOR)
    cameras = EnvCameras(env.runner, None, SIZE)
    before = cameras.pose(0)
    for _ in range(60):
        env.step([{'jetbot': {'move_by_speed': [1.0, 0.0]}}])
    after = cameras.pose(0)
    x = env.get_observations()[0]['jetbot']['position'][0]
    assert x > 0.6
    np.testing.assert_allclose(after.position - before.position, [x - 0.5, 0, 0], atol=0.02)
    assert np.array_equal(after.rotation, before.rotation)


@pytest.mark.parametrize(('camera', 'way'), [('side', (0.0, -1.0)), ('front:jetbot', (1.0, 0.0))])
def test_it_looks_straight_from_a_side(start: Callable[..., Env], camera: str, way: tuple[float, float]) -> None:
    """Of a robot that heads along x."""
    position = EnvCameras(start(FLOOR).runner, camera, SIZE).pose(0).position - [0.5, 0.0, 0.0]
    np.testing.assert_allclose(position[:2] / np.linalg.norm(position[:2]), way, atol=0.1)


def test_goals_are_in_the_picture_as_long_as_they_are_near(start: Callable[..., Env]) -> None:
    env = start(FLOOR)
    cameras = EnvCameras(env.runner, 'follow:jetbot', SIZE)
    robot = np.array([0.5, 0.0, 0.05])
    for goal in ([0.5, 1.0, 0.0], [1.5, 0.0, 0.0], [-0.5, -0.5, 0.0]):
        pose = cameras.pose(0, [np.array(goal)])
        places, ahead = pose.project(np.array([goal, robot]))
        assert (np.abs(places) < 1.0).all() and (ahead > 0.0).all()
    places, _ = cameras.pose(0, [np.array([50.0, 0.0, 0.0])]).project(robot)
    assert (np.abs(places) < 1.0).all()


def test_it_stands_where_no_wall_comes_between(start: Callable[..., Env]) -> None:
    free, beside, narrow = (
        EnvCameras(start(FLOOR, *walls).runner, None, SIZE).pose(0).position for walls in ((), (WALL,), (WALL, OTHER))
    )
    assert free[1] < -0.25  # behind the wall, if there were one
    np.testing.assert_allclose(beside, free * [1, -1, 1], atol=0.02)
    assert -0.19 < narrow[1] < 0.19  # in front of both
