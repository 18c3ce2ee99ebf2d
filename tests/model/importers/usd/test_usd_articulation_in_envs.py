"""Robots and doors from USD files in an env: names, paths, drives."""

import weakref
from pathlib import Path

import numpy as np
import pytest

from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene import scene
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.generic import GenericRobotCfg

ARM = Path(__file__).parents[4] / 'examples' / 'arm.usda'
PER_RADIAN = 180 / np.pi

import_extensions()


@BaseRobot.register('PlainRobot')
class PlainRobot(BaseRobot):
    """Says nothing about drives."""

    batched = True


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Envs that earlier tests have left open, or to the garbage collector, are not looked into."""
    monkeypatch.setattr(scene, '_opened', weakref.WeakValueDictionary())


@pytest.mark.parametrize('fixed_base', [None, False])
def test_a_robot_from_usd(alone, make_env, make_task, make_robot, fixed_base):
    config = GenericRobotCfg(usd_path=str(ARM), position=(1, 2, 3), fixed_base=fixed_base)
    env = make_env(tasks=[make_task(robots=[config])] * 2, env_num=2)
    env.reset()
    robot = env.runner.current_tasks['1'].robots['robot']
    assert list(robot.articulation.dof_names) == ['shoulder', 'elbow']
    stiffness, damping = robot.articulation.get_gains()
    np.testing.assert_allclose(stiffness, np.array([2, 1]) * PER_RADIAN, rtol=1e-6)
    np.testing.assert_allclose(damping, np.array([0.2, 0.1]) * PER_RADIAN, rtol=1e-6)
    path = config.prim_path.removeprefix('/')
    lower = next(body for name, body in robot._rigid_body_map.items() if name.endswith(f'{path}/lower'))
    np.testing.assert_allclose(lower.get_pose()[0], [1.3, 2, 3.52], atol=1e-5)
    same = IRigidBody.create(prim_path=lower.name)
    np.testing.assert_array_equal(same.get_pose()[0], lower.get_pose()[0])
    batch, slot = env.runner.world.batch(1)
    ctrl = batch.ctrl[slot]
    assert ctrl[:4].tolist() == pytest.approx([0, np.pi / 4, 0, 0])  # positions, then velocities


def test_gains_of_the_config_or_the_class_go_before_those_of_the_file(make_env, make_task, make_robot):
    robots = [
        GenericRobotCfg(name='given', prim_path='/given', usd_path=str(ARM), stiffness=7.0),
        make_robot(str(ARM), type='PlainRobot', name='plain', prim_path='/plain', controllers=[]),
    ]
    env = make_env(tasks=[make_task(robots=robots)], env_num=1)
    env.reset()
    found = env.runner.current_tasks['0'].robots
    assert found['given'].articulation.get_gains()[0].tolist() == [7, 7]
    assert found['given'].articulation.get_gains()[1].tolist() == [10, 10]
    np.testing.assert_allclose(found['plain'].articulation.get_gains()[0], np.array([2, 1]) * PER_RADIAN, rtol=1e-6)


def test_a_door_in_a_scene_is_listed_and_closes_by_its_drive(make_env, make_task):
    env = make_env(tasks=[make_task(scene=str(ARM), max_steps=400, scene_scale=(2, 2, 2))], env_num=1)
    env.reset()
    task = env.runner.current_tasks['0']
    assert set(task.scene_rigid_bodies) == {'arm/upper', 'arm/lower'}
    for _ in range(300):
        env.step([None])
    position, orientation = env.runner.get_obj('arm/lower').get_pose()
    np.testing.assert_allclose(position, [0.6, 0, 1.04], atol=0.02)
    assert 2 * np.arctan2(orientation[3], orientation[0]) == pytest.approx(np.pi / 4, abs=0.02)
    with pytest.raises(ValueError, match='is attached to other bodies'):
        env.runner.get_obj('arm/lower').set_pose([0, 0, 0])
