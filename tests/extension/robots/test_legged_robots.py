"""Aliengo, Go2 and G1 as robots of an env: gains, home pose, and what their drives do under real physics."""

from collections.abc import Callable

import numpy as np
import pytest

from internutopia.core.robot.robot import BaseRobot
from internutopia.core.vec_env import Env
from internutopia_extension.configs.joint_names import ALIENGO_GYM_12, G1_GYM
from internutopia_extension.configs.robots import aliengo, g1, go2
from internutopia_extension.robots.legged import LeggedRobot

Start = Callable[[str], Env]

CONFIGS = {
    'aliengo': aliengo.AliengoRobotCfg(position=(0.0, 0.0, 0.392)),
    'go2': go2.Go2RobotCfg(position=(0.0, 0.0, 0.288)),
    'g1': g1.G1RobotCfg(position=(0.0, 0.0, 0.785)),
}
LINKS = {
    'aliengo': ('base', 'trunk', 'FL_foot'),
    'go2': ('base', 'Head_upper', 'radar', 'FL_foot'),
    'g1': ('pelvis', 'imu_in_torso', 'left_ankle_roll_link'),
}
# Public gains [N·m/rad, N·m·s/rad] and home positions [rad] by part of the joint's name; other joints are at 0
GAINS = {
    'aliengo': {'': (40, 2)},
    'go2': {'': (50, 2)},
    'g1': {
        'hip': (150, 2),
        'knee': (300, 4),
        'ankle': (50, 5),
        'waist_yaw': (300, 5),
        'shoulder': (200, 4),
        'elbow': (100, 1),
        'wrist': (20, 0.5),
    },
}
HOME = {
    'aliengo': {'thigh': 0.8, 'calf': -1.5},
    'go2': {'thigh': 0.9, 'calf': -1.8},
    'g1': {'hip_pitch': -0.1, 'knee': 0.3, 'ankle_pitch': -0.2},
}
PUBLIC_JOINTS = {'aliengo': ALIENGO_GYM_12, 'go2': ALIENGO_GYM_12, 'g1': G1_GYM}


@pytest.fixture
def start(run: Callable[..., Env]) -> Start:
    """Starts one env with a robot that stands on the floor."""
    return lambda name: run(CONFIGS[name])


def robot_of(env: Env) -> LeggedRobot:
    [robot] = next(iter(env.runner.current_tasks.values())).robots.values()
    assert isinstance(robot, LeggedRobot)
    return robot


def by_name(robot: BaseRobot, values: np.ndarray) -> dict[str, float]:
    return dict(zip(robot.articulation.dof_names, values.tolist(), strict=True))


@pytest.mark.parametrize('name', CONFIGS)
def test_gains_are_the_public_ones_and_can_be_restored(start: Start, name: str) -> None:
    robot = robot_of(start(name))
    for restore in (lambda: None, robot.set_gains):
        restore()
        stiffness, damping = (by_name(robot, gains) for gains in robot.articulation.get_gains())
        for joint in PUBLIC_JOINTS[name]:
            [gains] = [gains for part, gains in GAINS[name].items() if part in joint]
            assert (stiffness[joint], damping[joint]) == gains
        assert min(stiffness.values()) > 1  # nothing is floppy, the two further joints of G1's waist included
        robot.articulation.set_gains(1.0, 1.0)


@pytest.mark.parametrize('name', CONFIGS)
def test_starts_in_its_home_pose_and_observes_its_base(start: Start, name: str) -> None:
    env = start(name)
    robot = robot_of(env)
    for joint, position in by_name(robot, robot.articulation.get_joint_positions()).items():
        home = [value for part, value in HOME[name].items() if part in joint]
        assert position == pytest.approx(home[0] if home else 0.0, abs=1e-6)
    obs = env.get_observations()[0][name]
    assert obs['position'] == pytest.approx(CONFIGS[name].position, abs=1e-6)
    assert obs['orientation'] == pytest.approx([1, 0, 0, 0], abs=1e-6)
    assert robot.get_robot_base().name.endswith(f'/{LINKS[name][0]}')
    prefix = robot.config.prim_path
    assert {f'{prefix}/{link}' for link in LINKS[name]} <= set(robot._rigid_body_map)


def test_aliengo_stands_with_stiff_drives(start: Start) -> None:
    """The public 40 N·m/rad alone do not hold its weight: a policy has to; 150 N·m/rad do."""
    env = start('aliengo')
    robot = robot_of(env)
    robot.articulation.set_gains(150.0, 5.0)
    for _ in range(60):
        env.step([{}])
    obs = env.get_observations()[0]['aliengo']
    assert 0.36 < obs['position'][2] < 0.392
    assert obs['orientation'][0] > 0.999
    assert np.abs(obs['joint_velocities']).max() < 0.05
    assert np.linalg.norm(obs['position'][:2]) < 0.05


def test_go2_stands_by_its_own_drives(start: Start) -> None:
    """For 2 s; its knees give way as its weight says, by about m g / 4 * 0.167 m / 50 N·m/rad = 0.12 rad."""
    env = start('go2')
    robot = robot_of(env)
    home = robot.articulation.get_joint_positions()
    for _ in range(96):
        env.step([{}])
    obs = env.get_observations()[0]['go2']
    assert obs['orientation'][0] > 0.9995
    assert np.linalg.norm(obs['position'][:2]) < 0.05
    assert np.abs(obs['joint_velocities']).max() < 0.02
    bent = by_name(robot, obs['joint_positions'] - home)
    for end in ('F', 'R'):
        left, right = (-bent[f'{end}{side}_calf_joint'] for side in ('L', 'R'))
        assert 0.05 < left < 0.25 and left == pytest.approx(right, abs=0.01)


def test_a_missing_policy_says_how_to_train_one(run: Callable[..., Env]) -> None:
    legs = go2.move_by_speed_cfg.update(policy_weights_path='robots/go2/mine.onnx')
    with pytest.raises(FileNotFoundError, match='`internutopia train InternUtopia/Go2-Velocity-v0`') as error:
        run(CONFIGS['go2'].update(controllers=[go2.move_to_point_cfg.update(sub_controllers=[legs])]))
    assert "'move_by_speed'" in str(error.value) and 'policy_weights_path' in str(error.value)


def test_g1_holds_its_pose_until_it_tips(start: Start) -> None:
    env = start('g1')
    robot = robot_of(env)
    home = robot.articulation.get_joint_positions()
    for _ in range(25):
        env.step([{}])
    obs = env.get_observations()[0]['g1']
    assert obs['position'][2] > 0.77
    assert np.abs(obs['joint_positions'] - home).max() < 0.15
    waist = by_name(robot, obs['joint_positions'] - home)
    assert max(abs(waist[joint]) for joint in waist if 'waist' in joint) < 0.03
