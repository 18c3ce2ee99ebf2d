"""Ridgeback with Franka: the base drives as commanded, the arm reaches poses meanwhile, and both do together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.config import Config, SimConfig
from internutopia.config.learning import LearningCfg
from internutopia.core.vec_env import Env
from internutopia.rl import VectorEnv
from internutopia_extension.configs.controllers import HolonomicDriveControllerCfg
from internutopia_extension.configs.robots import ridgeback_franka
from internutopia_extension.configs.robots.ridgeback_franka import RidgebackFrankaRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

NAME = 'ridgeback_franka'
MOVES = ridgeback_franka.move_by_speed_cfg
ARM = ridgeback_franka.arm_ik_cfg
DOWN = (0.0, 1.0, 0.0, 0.0)  # (w, x, y, z): the gripper points to the floor
SECOND = 60  # env steps
SIM = {'physics_dt': '1/240', 'substeps': 4}
START = (1.0, 2.0, 0.0)
HEADING = 0.5  # rad
TURNED = (math.cos(HEADING / 2), 0.0, 0.0, math.sin(HEADING / 2))
Start = Callable[..., Env]


@pytest.fixture
def start(make_env: Callable[..., Env]) -> Start:
    """Starts envs with the robot on an empty plane, turned by half a radian, with these controllers."""

    def start(*controllers: Any, env_num: int = 1) -> Env:
        robot = RidgebackFrankaRobotCfg(position=START, orientation=TURNED, controllers=list(controllers))
        task = SingleInferenceTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot])
        env = make_env(tasks=[task] * env_num, env_num=env_num, sim=SIM)
        env.reset()
        return env

    return start


def drive(env: Env, *actions: dict[str, Any], steps: int = SECOND) -> list[dict[str, Any]]:
    """Send each env its action for so many steps; returns the last observations of the robots."""
    obs: Any = None
    for _ in range(steps):
        obs, *_ = env.step([{NAME: action} for action in actions])
    return [each[NAME] for each in obs]


def yaw(robot: dict[str, Any]) -> float:
    w, _, _, z = robot['orientation']
    return 2.0 * math.atan2(z, w)


def test_stands_on_the_ground_where_its_config_says(start: Start) -> None:
    env = start(MOVES)
    (robot,) = drive(env, {}, steps=SECOND // 2)
    np.testing.assert_allclose(robot['position'], (*START[:2], 0.0759 - 0.05), atol=1e-4)  # wheel radius, axle height
    assert yaw(robot) == pytest.approx(HEADING, abs=1e-4)
    assert np.abs(robot['joint_velocities']).max() < 1e-3


@pytest.mark.parametrize(('command', 'column', 'due'), [((5.0, 0.0, 0.0), 0, 1.0), ((0.0, 0.0, -100.0), 2, -4.0)])
def test_speeds_beyond_those_of_ridgeback_are_clamped(
    start: Start, command: tuple[float, ...], column: int, due: float, caplog: pytest.LogCaptureFixture
) -> None:
    (robot,) = drive(start(MOVES), {MOVES.name: command})
    assert robot['joint_velocities'][column] == pytest.approx(due, abs=0.02)
    assert 'speeds beyond (1.0, 1.0, 4.0) are clamped' in caplog.text


@pytest.mark.parametrize(
    'command', [(0.8, 0.0, 0.0), (-0.5, 0.0, 0.0), (0.0, 0.4, 0.0), (0.0, 0.0, -1.5), (0.5, -0.2, 0.8)]
)
def test_drives_at_the_commanded_speeds(start: Start, command: tuple[float, float, float]) -> None:
    """In an arc, if it turns as well: after a second of running in, each further second is known."""
    env = start(MOVES)
    forward, lateral, rotation = command
    (before,) = drive(env, {'move_by_speed': command}, steps=SECOND // 2)
    (after,) = drive(env, {'move_by_speed': command})
    assert yaw(after) - yaw(before) == pytest.approx(rotation, abs=0.003)
    # the integral of the velocity over a second in which it turns
    angles = yaw(before) + rotation * (np.arange(1000) + 0.5) / 1000
    way = np.mean([np.cos(angles), np.sin(angles)], axis=1) * forward
    way += np.mean([-np.sin(angles), np.cos(angles)], axis=1) * lateral
    np.testing.assert_allclose(after['position'][:2] - before['position'][:2], way, atol=0.004)
    (stopped,) = drive(env, {'move_by_speed': (0.0, 0.0, 0.0)}, steps=SECOND // 2)
    assert np.abs(stopped['joint_velocities']).max() < 0.01


@pytest.mark.slow
def test_the_gripper_stays_where_it_is_while_the_base_drives_past(start: Start) -> None:
    """It is behind by 0.12 s, as the arm's drives are (damping / stiffness: 0.1 s), and there once the base stops."""
    env = start(MOVES, ARM)
    target = (START[0] + 0.75 * math.cos(HEADING), START[1] + 0.75 * math.sin(HEADING), 0.6)
    speed = 0.05  # m/s
    action = {'move_by_speed': (speed, 0.0, 0.0), 'arm_ik_controller': [target, DOWN]}
    (robot,) = drive(env, action, steps=SECOND)
    for _ in range(4):
        (robot,) = drive(env, action, steps=SECOND // 2)
        ik = robot['controllers']['arm_ik_controller']
        assert ik['success'] and ik['finished']
        assert np.linalg.norm(ik['eef_position'] - target) < 0.13 * speed + 0.001
    assert np.linalg.norm(robot['position'][:2] - np.array(START[:2])) > 0.12
    (robot,) = drive(env, action | {'move_by_speed': (0.0, 0.0, 0.0)})
    ik = robot['controllers']['arm_ik_controller']
    np.testing.assert_allclose(ik['eef_position'], target, atol=0.001)
    assert abs(float(np.dot(ik['eef_orientation'], DOWN))) > 0.99999


def test_targets_in_the_frame_of_the_robot_go_along_with_the_base(start: Start) -> None:
    env = start(MOVES, ARM.update(reference='robot'))
    action = {'move_by_speed': (0.3, 0.0, 0.5), 'arm_ik_controller': [(0.7, -0.2, 0.6), DOWN]}
    (robot,) = drive(env, action, steps=3 * SECOND)
    ik = robot['controllers']['arm_ik_controller']
    np.testing.assert_allclose(ik['eef_position'], (0.7, -0.2, 0.6), atol=0.004)
    hand = env.runner.slot(0).task.robots[NAME].articulation.body('right_gripper').get_pose()[0]
    angle = yaw(robot)
    ahead = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]) @ (0.7, -0.2)
    np.testing.assert_allclose(hand[:2], robot['position'][:2] + ahead, atol=0.006)


@pytest.mark.slow
def test_what_is_too_far_for_the_arm_is_reached_with_the_base(start: Start) -> None:
    env = start(ridgeback_franka.move_to_point_cfg, ARM)
    target, place = (4.0, 0.5, 0.5), (3.35, 0.6, 0.0)
    (robot,) = drive(env, {'arm_ik_controller': [target, DOWN]}, steps=SECOND)
    assert not robot['controllers']['arm_ik_controller']['success']
    (robot,) = drive(env, {'move_to_point': [place]}, steps=9 * SECOND)
    assert robot['controllers']['move_to_point']['finished']
    assert np.linalg.norm(robot['position'][:2] - np.array(place[:2])) < 0.04
    (robot,) = drive(env, {'arm_ik_controller': [target, DOWN]}, steps=2 * SECOND)
    ik = robot['controllers']['arm_ik_controller']
    assert ik['success'] and ik['finished']
    np.testing.assert_allclose(ik['eef_position'], target, atol=0.002)


@pytest.mark.slow
def test_turns_to_a_heading_and_opens_and_closes_its_gripper(start: Start) -> None:
    env = start(ridgeback_franka.rotate_cfg, ridgeback_franka.gripper_cfg)
    goal = (math.cos(-0.5), 0.0, 0.0, math.sin(-0.5))  # 1 rad to the right of x
    (robot,) = drive(env, {'rotate': [goal], 'gripper_controller': ['close']}, steps=5 * SECOND)
    assert yaw(robot) == pytest.approx(-1.0, abs=0.04)
    np.testing.assert_allclose(robot['joint_positions'][-2:], 0.0, atol=1e-3)
    (robot,) = drive(env, {'gripper_controller': ['open']})
    np.testing.assert_allclose(robot['joint_positions'][-2:], 0.04, atol=1e-3)


def test_envs_do_not_know_each_other(start: Start) -> None:
    env = start(MOVES, ARM, env_num=3)
    commands = [(0.5, 0.0, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.0)]
    robots = drive(env, *[{'move_by_speed': command} for command in commands])
    (alone,) = drive(start(MOVES, ARM), {'move_by_speed': commands[0]})
    np.testing.assert_array_equal(robots[0]['joint_positions'], alone['joint_positions'])
    np.testing.assert_allclose(robots[2]['position'][:2], START[:2], atol=1e-4)


def test_is_driven_by_the_array_api() -> None:
    robot = RidgebackFrankaRobotCfg(controllers=[MOVES])
    learning = {'action': {'controller': 'move_by_speed'}, 'observations': [{'term': 'joint_velocities'}]}
    task = SingleInferenceTaskCfg(
        scene_asset_path='scenes/empty.xml', robots=[robot], learning=LearningCfg.model_validate(learning)
    )
    config = Config(
        simulator=SimConfig.model_validate(SIM | {'threads': 1}),
        env_num=4,
        task_configs=[task] * 4,
        metrics_save_path='none',
    )
    envs = VectorEnv(config)
    try:
        obs, _ = envs.reset()
        speeds = np.array([[0.1 * i, -0.1 * i, 0.0] for i in range(4)], np.float32)
        for _ in range(SECOND // 2):
            obs, *_ = envs.step(speeds)
        np.testing.assert_allclose(obs[:, :2], speeds[:, :2], atol=0.002)
    finally:
        envs.close()


def test_a_base_has_three_joints(start: Start) -> None:
    with pytest.raises(ValueError, match='joint_names: expected 3'):
        start(HolonomicDriveControllerCfg(name='drive', joint_names=['panda_joint1']))
