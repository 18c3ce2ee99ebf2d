"""Names and paths as scripts of 2.x write them: of links below prims of a file, of objects inside their env."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.core.robot.robot import BaseRobot
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.robots.franka import Franka

import_extensions()


@BaseRobot.register('FrankaBelowAPrim')
class FrankaBelowAPrim(BaseRobot):
    """An arm as a class of 2.x has it whose file keeps the robot below another prim: all else is said by the asset."""

    def __init__(self, config: Any, scene: Any):
        super().__init__(config, scene)
        self.articulation = Franka(prim_path=config.prim_path, end_effector_prim_name='franka/panda_hand')

    def post_reset(self) -> None:
        super().post_reset()
        self.ik_base = self._rigid_body_map[self.config.prim_path + '/franka/panda_link0']

    def get_robot_ik_base(self) -> Any:
        return self.ik_base

    def apply_action(self, action: dict[str, Any]) -> None:
        for name, controller_action in action.items():
            self.articulation.apply_action(self.controllers[name].action_to_control(controller_action))

    def get_obs(self) -> Any:
        controllers, _ = self._get_controllers_and_sensors_obs()
        return controllers


@pytest.fixture
def env(make_env, make_block) -> Any:
    robot = FrankaRobotCfg(type='FrankaBelowAPrim', controllers=[arm_ik_cfg.update(reference='arm_base')])
    blocks = [make_block('table', mass=1.0, position=(1, 0, 0.1)), make_block('chair', position=(2, 0, 0.1))]
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.usd', robots=[robot], objects=blocks)
    env = make_env(tasks=[task] * 2, env_num=2, compat='2.x')
    env.reset()
    return env


def task_of(env: Any, env_id: int) -> Any:
    return next(task for task in env.runner.current_tasks.values() if task.env_id == env_id)


def test_links_are_found_by_their_paths_below_a_prim_of_the_file(env):
    robot = task_of(env, 1).robots['franka']
    base = robot._rigid_body_map[robot.config.prim_path + '/franka/panda_link0']
    assert base.prim_path == '/World/env_1/robots/franka/panda_link0'
    assert robot.config.prim_path + '/franka/panda_link0' in robot._rigid_body_map
    assert robot.config.prim_path + '/franka/panda_link99' not in robot._rigid_body_map
    hand = robot.articulation.body('panda_hand').get_pose()
    for part, same in zip(robot.articulation.end_effector.get_pose(), hand, strict=True):
        assert np.array_equal(part, same)
    with pytest.raises(KeyError, match='panda_link7'):
        robot._rigid_body_map[robot.config.prim_path + '/franka/panda_lnk7']


def test_a_class_that_leaves_all_to_the_asset_reaches_its_target_and_stays(env):
    target = np.array([0.45, 0.1, 0.4])
    env.step([{'franka': {'arm_ik_controller': [target, None]}}] * 2)
    obs: Any = []
    for _ in range(400):
        obs, *_ = env.step([{}, None])
    for each in obs:
        assert np.linalg.norm(each['franka']['arm_ik_controller']['eef_position'] - target) < 0.002
        assert each['franka']['arm_ik_controller']['finished']


def test_objects_are_found_by_their_names_inside_the_env(env):
    for env_id in (0, 1):
        task = task_of(env, env_id)
        assert task.objects['table'].name == f'table_{env_id}'
        assert task._scene.get(task.objects['table'].name).name == 'table'
        assert task._scene.object_exists(f'chair_{env_id}') and not task._scene.object_exists(f'chair_{env_id}_0')
        path = task._scene.get('table').unwrap().prim_path
        assert path == task.objects['table'].config.prim_path
    assert env.runner.get_obj('table').unwrap().prim_path.startswith('/World/env_0/objects/')
    with pytest.raises(KeyError, match='chair'):
        task_of(env, 0)._scene.get('chairs_0')


def test_a_controller_knows_its_robot_by_the_name_that_some_packages_use(make_env, make_task):
    env = make_env(tasks=[make_task()], env_num=1)
    env.reset()
    robot = next(iter(task_of(env, 0).robots.values()))
    for controller in robot.get_controllers().values():
        assert controller._robot is controller.robot
