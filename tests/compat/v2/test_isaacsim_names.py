"""Handles under the class names of 2.x, made from prim paths in the middle of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.core.config import Config, SimConfig
from internutopia.core.robot.articulation import ArticulationAction, IArticulation
from internutopia.core.robot.isaacsim.articulation import IsaacsimArticulation
from internutopia.core.robot.isaacsim.rigid_body import IsaacsimRigidBody
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.isaacsim.scene import IsaacsimScene  # pyright: ignore[reportMissingImports]
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.robots.franka import Franka
from internutopia_extension.robots.jetbot import WheeledRobot

import_extensions()

CAR, ARM, BOX = '/World/env_1/robots/car', '/World/env_1/robots/arm', '/World/env_1/objects/box'


@pytest.fixture
def env(request) -> Env:
    car = JetbotRobotCfg(name='car', prim_path='/car', position=(1.0, 0.0, 0.03), usd_path='robots/jetbot/jetbot.xml')
    arm = FrankaRobotCfg(name='arm', prim_path='/arm', position=(-1.0, 0.0, 0.0))
    box = DynamicCubeCfg(name='box', prim_path='/box', position=(0.0, 1.0, 0.1), scale=(0.2, 0.2, 0.2), mass=1.0)
    task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[car, arm], objects=[box])
    simulator = SimConfig(physics_dt=1 / 240, substeps=5)
    env = Env(Config(simulator=simulator, env_num=2, task_configs=[task] * 2, metrics_save_path='none'))
    request.addfinalizer(env.close)
    env.reset()
    return env


def wheels_of(**fields: Any) -> WheeledRobot:
    return WheeledRobot(CAR, wheel_dof_names=['right_wheel_joint', 'left_wheel_joint'], **fields)


def test_an_articulation_is_made_from_its_prim_path(env):
    handle = IsaacsimArticulation('robots/jetbot/jetbot.xml', CAR, 'mine', (1.0, 0.0, 0.03), None, (1.0, 1.0, 1.0))
    assert isinstance(handle, IArticulation) and handle.name == 'mine' and handle.is_valid()
    assert isinstance(handle.unwrap(), IArticulation) and handle.unwrap() is not handle
    assert handle._articulation is handle._articulation_view is handle.unwrap()
    assert handle.handles_initialized and handle.num_dof == 2
    position, orientation = handle.get_world_pose()
    np.testing.assert_allclose(position, np.add(handle.offset, [1.0, 0.0, 0.03]), atol=1e-3)
    assert handle.offset != [0.0, 0.0, 0.0]
    np.testing.assert_allclose(orientation, [1, 0, 0, 0], atol=1e-6)
    assert isinstance(env.runner.current_tasks['1'].robots['car']._scene, IsaacsimScene)


def test_a_pose_that_is_not_the_configs_is_taken(env):
    before = IArticulation.create(prim_path=CAR).get_pose()
    same = IArticulation.create(prim_path=CAR, position=[1.0, 0.0, 0.03]).get_pose()
    np.testing.assert_array_equal(same[0], before[0])
    moved = IArticulation.create(prim_path=CAR, position=[2.0, 0.5, 0.03], orientation=[0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(moved.get_pose()[0], [2.0, 0.5, 0.03], atol=1e-6)
    np.testing.assert_allclose(moved.get_pose()[1], [0, 0, 0, 1], atol=1e-6)


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        ({'usd_path': 'robots/h1/h1.xml'}, "'car' was loaded from robots/jetbot/jetbot.xml, not from robots/h1/h1.xml"),
        ({'scale': (2.0, 2.0, 2.0)}, r"'car' was loaded at scale 1, not \(2.0, 2.0, 2.0\)"),
    ],
)
def test_another_model_than_the_configs_is_an_error(env, wrong, message):
    with pytest.raises(ValueError, match=message):
        IsaacsimArticulation(prim_path=CAR, **wrong)
    with pytest.raises(KeyError, match='no robot at'):
        IsaacsimArticulation(prim_path=CAR + 'avan')
    with pytest.raises(ValueError, match='needs a prim_path'):
        IsaacsimArticulation()


def test_status_comes_back(env):
    handle = IsaacsimArticulation(prim_path=CAR)
    with pytest.raises(RuntimeError, match='save_status first'):
        handle.restore_status()
    handle.set_joint_positions([0.3, 0.4])
    handle.save_status()
    before = handle.get_world_pose()
    handle.set_world_pose([0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0])
    handle.set_joint_positions([0.0, 0.0])
    handle.restore_status()
    np.testing.assert_allclose(handle.get_joint_positions(), [0.3, 0.4], atol=1e-6)
    for now, then in zip(handle.get_world_pose(), before, strict=True):
        np.testing.assert_allclose(now, then, atol=1e-6)


def test_control_modes_take_gains_away_and_give_them_back(env):
    handle = IsaacsimArticulation(prim_path=ARM)
    stiffness, damping = handle.get_gains()
    handle.switch_control_mode('velocity')
    handle._articulation_controller.switch_dof_control_mode(dof_index=2, mode='effort')
    zeros = np.zeros_like(stiffness)
    np.testing.assert_array_equal(handle.get_gains()[0], zeros)
    np.testing.assert_array_equal(handle.get_gains()[1], np.where(np.arange(9) == 2, 0, damping))
    handle.switch_control_mode(mode='position')
    np.testing.assert_array_equal(handle.get_gains(), (stiffness, damping))
    with pytest.raises(ValueError, match="mode 'force' is not one of position, velocity, effort"):
        handle.switch_control_mode('force')  # pyright: ignore[reportArgumentType]


def test_wheels_are_commanded_separately(env):
    wheels = wheels_of()
    right, left = (wheels.get_dof_index(f'{side}_wheel_joint') for side in ('right', 'left'))
    assert wheels.wheel_dof_indices == [right, left]
    assert wheels.get_articulation_controller_properties() == (['right_wheel_joint', 'left_wheel_joint'], [right, left])
    wheels.apply_wheel_actions(ArticulationAction(joint_velocities=[6.0, 3.0]))
    for _ in range(24):
        env.step([None, None])
    np.testing.assert_allclose(wheels.get_wheel_velocities(), [6.0, 3.0], rtol=0.02)
    assert wheels.get_joint_velocities()[left] == pytest.approx(3.0, rel=0.02)
    wheels.set_wheel_positions([0.5, 0.25])
    np.testing.assert_allclose(wheels.get_wheel_positions(), [0.5, 0.25], atol=1e-6)
    wheels.set_wheel_velocities([1.0, 2.0])
    np.testing.assert_allclose(wheels.get_wheel_velocities(), [1.0, 2.0], atol=1e-6)
    with pytest.raises(ValueError, match='3 velocities for 2 joints'):
        wheels.apply_wheel_actions(ArticulationAction(joint_velocities=[1.0, 2.0, 3.0]))
    with pytest.raises(ValueError, match='wheel_dof_names'):
        WheeledRobot(CAR)
    with pytest.raises(KeyError, match="no joint 'rear_wheel'"):
        WheeledRobot(CAR, wheel_dof_names=['rear_wheel'])
    same = WheeledRobot('/World/env_1/robots', robot_path='/car', wheel_dof_indices=[left])
    assert same.prim_path == CAR and same.wheel_dof_indices == [left]


def test_the_gripper_of_franka_opens_and_closes(env):
    arm = Franka(ARM, gripper_open_position=[0.03, 0.03])
    assert arm.end_effector.name == f'{ARM}/panda_rightfinger'
    assert Franka(ARM, end_effector_prim_name='panda_hand').end_effector.name == f'{ARM}/panda_hand'
    for word, width in (('close', 0.0), ('open', 0.03)):
        getattr(arm.gripper, word)()
        for _ in range(48):
            env.step([None, None])
        np.testing.assert_allclose(arm.gripper.get_joint_positions(), width, atol=2e-3)
    with pytest.raises(ValueError, match="expected 'open' or 'close', got 'shut'"):
        arm.gripper.forward('shut')  # pyright: ignore[reportArgumentType]


def test_a_rigid_body_is_made_from_its_prim_path_and_put_where_it_is_commanded(env):
    body = IsaacsimRigidBody(BOX, position=[0.5, 1.5, 0.4], mass=3.0, linear_velocity=[0.0, 0.0, 1.0])
    assert isinstance(body, IRigidBody) and body.is_valid()
    np.testing.assert_allclose(body.get_pose()[0], [0.5, 1.5, 0.4], atol=1e-6)
    assert body.get_mass() == pytest.approx(3.0)
    np.testing.assert_allclose(body.get_linear_velocity(), [0, 0, 1], atol=1e-6)
    placed = IRigidBody.create(prim_path=BOX, translation=[0.1, 1.0, 0.2], orientation=[0.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(placed.get_local_pose()[0], [0.1, 1.0, 0.2], atol=1e-6)
    with pytest.raises(ValueError, match='position .* or translation .* not both'):
        IRigidBody.create(prim_path=BOX, position=[0, 0, 1], translation=[0, 0, 1])
    with pytest.raises(TypeError, match='velocity'):
        IRigidBody.create(prim_path=BOX, velocity=[0, 0, 1])  # pyright: ignore[reportCallIssue]
