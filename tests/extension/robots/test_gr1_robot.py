"""GR1 as a robot of an env: gains, home pose, what it observes, and what its drives do under real physics."""

from collections.abc import Callable

import numpy as np
import pytest

from internutopia.core.vec_env import Env
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.joint_names import GR1_54, GR1_TELEOP_54
from internutopia_extension.configs.robots import gr1
from internutopia_extension.robots.legged import GR1Robot

Start = Callable[..., Env]

HEIGHT = 0.898  # m, of the pelvis when GR1 stands at home
TORSO = np.array([0.003, 0.00007, 0.32825])  # m, torso_link from the pelvis: three waist joints and a fixed one, at 0
# Public gains [N·m/rad, N·m·s/rad] and home positions [rad] by part of the joint's name; other joints are at 0
GAINS = {
    'hip_roll': (251.625, 14.72),
    'hip_yaw': (362.52, 10.0833),
    'hip_pitch': (200, 11),
    'knee': (200, 11),
    'ankle': (10.9805, 0.6),
    'waist': (350, 15),
    'head': (112.06, 3.1),
    'shoulder_pitch': (92.85, 2.575),
    'shoulder_roll': (92.85, 2.575),
    'shoulder_yaw': (112.06, 3.1),
    'elbow': (112.06, 3.1),
    'wrist_yaw': (112.06, 3.1),
    'wrist_roll': (10, 1),
    'left_wrist_pitch': (10, 2),
    'right_wrist_pitch': (10, 1),
    'L_thumb_distal': (5, 1),
    'R_thumb_distal': (5, 2),
    'thumb_proximal': (5, 2),
    'index': (5, 2),
    'middle': (5, 2),
    'ring': (5, 2),
    'pinky': (5, 2),
}
HOME = {
    'hip_pitch': -0.2618,
    'knee': 0.5236,
    'ankle_pitch': -0.2618,
    'left_shoulder_roll': 0.2,
    'right_shoulder_roll': -0.2,
    'elbow': -0.3,
}


@pytest.fixture
def start(run: Callable[..., Env]) -> Start:
    """Starts an env with a GR1 that stands on the floor, with joint controllers in both of its public orders."""
    config = gr1.GR1RobotCfg(
        position=(0.0, 0.0, HEIGHT),
        controllers=[
            JointControllerCfg(name='joints', joint_names=GR1_54),
            JointControllerCfg(name='teleop', joint_names=GR1_TELEOP_54),
        ],
    )
    return lambda env_num=1: run(config, env_num=env_num)


def robot_of(env: Env) -> GR1Robot:
    [robot] = next(iter(env.runner.current_tasks.values())).robots.values()
    assert isinstance(robot, GR1Robot)
    return robot


def value_of(parts: dict[str, tuple[float, float]], joint: str) -> tuple[float, float]:
    [value] = [value for part, value in parts.items() if part in joint]
    return value


def test_gains_are_the_public_ones_and_can_be_restored(start: Start) -> None:
    robot = robot_of(start())
    assert sorted(robot.articulation.dof_names) == sorted(GR1_54)
    expected = [value_of(GAINS, joint) for joint in robot.articulation.dof_names]
    np.testing.assert_allclose(np.transpose(robot.articulation.get_gains()), expected, rtol=1e-6)
    robot.articulation.set_gains(1.0, 1.0)
    robot.set_gains()
    np.testing.assert_allclose(np.transpose(robot.articulation.get_gains()), expected, rtol=1e-6)


def test_starts_in_its_home_pose_and_observes_its_torso(start: Start) -> None:
    env = start()
    robot = robot_of(env)
    obs = env.get_observations()[0]['gr1']
    for joint, position in zip(robot.articulation.dof_names, obs['joint_positions'], strict=True):
        home = [value for part, value in HOME.items() if part in joint]
        assert position == pytest.approx(home[0] if home else 0.0, abs=1e-6)
    np.testing.assert_allclose(obs['position'], TORSO + [0, 0, HEIGHT], atol=1e-4)
    np.testing.assert_allclose(obs['orientation'], [1, 0, 0, 0], atol=1e-6)
    assert robot.get_robot_base().name == '/World/env_0/robots/gr1/torso_link'
    assert '/World/env_0/robots/gr1/imu_link' in robot._rigid_body_map


def test_stands_for_a_moment_as_all_its_copies_do(start: Start) -> None:
    """Its soft ankles let it fall in the end; for one second constant targets hold it up, quietly."""
    env = start(env_num=2)
    for step in range(50):
        env.step([{}, {}])
        first, second = (obs['gr1'] for obs in env.get_observations())
        for key in ('position', 'joint_positions', 'joint_velocities'):
            np.testing.assert_array_equal(first[key], second[key])
        if step > 10:
            assert np.abs(first['joint_velocities']).max() < 0.5
    first = env.get_observations()[0]['gr1']
    assert first['position'][2] == pytest.approx(HEIGHT + TORSO[2], abs=0.03)
    assert first['orientation'][0] > 0.998
    hands = [name.startswith(('L_', 'R_')) for name in robot_of(env).articulation.dof_names]
    assert np.abs(first['joint_positions'][hands]).max() < 0.01


@pytest.mark.parametrize(('controller', 'order'), [('joints', GR1_54), ('teleop', GR1_TELEOP_54)])
def test_commands_reach_the_joints_they_name(start: Start, controller: str, order: list[str]) -> None:
    env = start()
    robot = robot_of(env)
    targets = [robot.home.get(joint, 0.0) for joint in order]
    moved = {'R_ring_intermediate_joint': -1.0, 'L_thumb_proximal_pitch_joint': 0.8, 'left_wrist_yaw_joint': 0.7}
    for joint, target in moved.items():
        targets[order.index(joint)] = target
    before = dict(zip(robot.articulation.dof_names, robot.articulation.get_joint_positions(), strict=True))
    for _ in range(30):
        env.step([{'gr1': {controller: [targets]}}])
    after = dict(zip(robot.articulation.dof_names, robot.articulation.get_joint_positions(), strict=True))
    for joint, target in moved.items():
        assert 0.5 * abs(target) < after[joint] * np.sign(target) < 1.1 * abs(target)
    for joint in set(order) - set(moved):
        if joint.startswith(('L_', 'R_', 'head', 'waist')):
            assert after[joint] == pytest.approx(before[joint], abs=0.05)
