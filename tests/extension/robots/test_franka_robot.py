"""Franka as a robot of an env, its gripper, and a cube that it picks up and places under real physics."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.config import ObjectCfg
from internutopia.core.datahub import DataHub
from internutopia.core.observations import ReadRows
from internutopia.core.vec_env import Env
from internutopia_extension.configs.controllers import GripperControllerCfg
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots import h1
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.robots.mocap_controlled_franka import MocapControlledFrankaRobotCfg
from internutopia_extension.configs.tasks import ManipulationTaskCfg
from internutopia_extension.robots.franka import FrankaRobot

CONTROLLERS = [arm_ik_cfg, gripper_cfg]
DOWN = (0.0, 1.0, 0.0, 0.0)
EDGE = 0.04  # m, of the cube
CUBES = [(0.5, 0.12), (0.42, -0.2)]  # (x, y) [m] by env
PLACE = (0.4, 0.25)


def franka_of(env: Env, env_id: int = 0) -> FrankaRobot:
    robot = list(env.runner.current_tasks.values())[env_id].robots['franka']
    assert isinstance(robot, FrankaRobot)
    return robot


def test_stands_at_home_without_sagging(run: Callable[..., Env]) -> None:
    """Gravity does not act on the arm, but on everything else."""
    env = run(FrankaRobotCfg(controllers=CONTROLLERS, position=(0.3, -0.2, 0.1)))
    robot = franka_of(env)
    for _ in range(60):
        env.step([{}])
    franka = env.get_observations()[0]['franka']
    np.testing.assert_allclose(franka['joint_positions'], list(robot.home.values()), atol=1e-4)
    np.testing.assert_allclose(franka['position'], (0.3, -0.2, 0.1), atol=1e-6)
    assert robot.get_robot_ik_base().name.endswith('/panda_link0')
    # the finger hangs on the hand, 0.0584 m along its z, and moves along its y
    hand, finger = (robot.articulation.body(link).get_pose()[0] for link in ('panda_hand', 'panda_rightfinger'))
    assert np.linalg.norm(finger - hand) == pytest.approx(np.hypot(0.0584, 0.04), abs=1e-4)
    np.testing.assert_allclose(franka['eef_position'], finger, atol=1e-6)
    assert franka['eef_orientation'].shape == (4,) and franka['joint_action'] == []


def test_joint_action_tells_what_controllers_commanded_last(run: Callable[..., Env]) -> None:
    env = run(FrankaRobotCfg(controllers=CONTROLLERS), env_num=2)
    both = {'arm_ik_controller': [(0.5, 0.0, 0.4), DOWN], 'gripper_controller': ['close']}
    obs, *_ = env.step([{'franka': both}, {'franka': {'gripper_controller': ['open']}}])
    arm, fingers = obs[0]['franka']['joint_action']
    assert arm['joint_indices'] == list(range(7)) and len(arm['joint_positions']) == 7
    assert fingers == {
        'joint_positions': [0.0, 0.0],
        'joint_velocities': None,
        'joint_efforts': None,
        'joint_indices': [7, 8],
    }
    [fingers] = obs[1]['franka']['joint_action']
    assert fingers['joint_positions'] == pytest.approx([0.04, 0.04])
    assert franka_of(env, 1).last_action == franka_of(env, 1).get_last_action() == [fingers]
    fingers['joint_positions'][0] = 9.0  # what a user does with an observation stays there
    assert franka_of(env, 1).last_action[0]['joint_positions'] == pytest.approx([0.04, 0.04])
    obs, *_ = env.step([{}, {'franka': {'gripper_controller': ['close']}}])
    assert len(obs[0]['franka']['joint_action']) == 2, 'no new command: the last one holds'
    assert obs[1]['franka']['joint_action'][0]['joint_positions'] == [0.0, 0.0]


def test_rows_that_are_made_when_they_are_read_are_a_sequence() -> None:
    rows = ReadRows([1, 2, 3, 4], str)
    assert list(rows) == list('1234') and rows[-1] == '4'
    assert list(rows[1:3]) == ['2', '3'] and list(rows.take([3, 0])) == ['4', '1']


def test_gripper_opens_and_closes(run: Callable[..., Env]) -> None:
    env = run(FrankaRobotCfg(controllers=CONTROLLERS), env_num=2)
    for commands, expected in ((['close', 'open'], [0.0, 0.04]), (['open', 'close'], [0.04, 0.0])):
        for _ in range(60):
            env.step([{'franka': {'gripper_controller': [command]}} for command in commands])
        for each, position in zip(env.get_observations(), expected, strict=True):
            np.testing.assert_allclose(
                each['franka']['controllers']['gripper_controller']['gripper_pos'], [position] * 2, atol=1e-3
            )


@pytest.mark.parametrize('action', [['opne'], ['open', 'close'], [None], ['open', 1.0], [np.nan]])
def test_other_gripper_commands_are_refused(run: Callable[..., Env], action: Any) -> None:
    env = run(FrankaRobotCfg(controllers=CONTROLLERS))
    with pytest.raises(ValueError, match="env 0, robot 'franka', controller 'gripper_controller': expected .*'open'"):
        env.step([{'franka': {'gripper_controller': action}}])


def test_a_robot_without_fingers_has_no_gripper(run: Callable[..., Env]) -> None:
    with pytest.raises(ValueError, match="robot 'h1.*' of type 'H1Robot' has no gripper"):
        run(h1.H1RobotCfg(controllers=[GripperControllerCfg(name='gripper')]))


def test_the_mocap_robot_is_the_same_arm(run: Callable[..., Env]) -> None:
    env = run(MocapControlledFrankaRobotCfg(controllers=CONTROLLERS))
    obs, *_ = env.step([{'mocap_controlled_franka': {'gripper_controller': ['close']}}])
    assert len(obs[0]['mocap_controlled_franka']['joint_action']) == 1


def cube_at(xy: tuple[float, float]) -> ObjectCfg:
    position = (*xy, EDGE / 2)
    return DynamicCubeCfg(name='cube', prim_path='/cube', position=position, scale=(EDGE, EDGE, EDGE), mass=0.1)


@pytest.mark.slow
def test_picks_up_a_cube_and_places_it(make_env: Callable[..., Env]) -> None:
    """Two envs at once, the cube elsewhere in each: it is lifted, and ends within 1 cm of its place."""
    tasks = [
        ManipulationTaskCfg(
            scene_asset_path='scenes/empty.xml',
            robots=[FrankaRobotCfg(controllers=CONTROLLERS)],
            objects=[cube_at(xy)],
            prompt='put the cube to the left',
            target='cube',
            max_steps=2000,
            episode_idx=index,
        )
        for index, xy in enumerate(CUBES)
    ]
    env = make_env(tasks=tasks, env_num=2, sim={'physics_dt': '1/240', 'substeps': 4})
    env.reset()
    cubes = [env.runner.get_obj('cube', env_id) for env_id in range(2)]

    def move(points: Any, height: float, grip: str, steps: int) -> list[float]:
        """Moves grippers to points (x, y); the heights of the cubes afterwards."""
        for _ in range(steps):
            _, _, terminated, *_ = env.step(
                [
                    {'franka': {'arm_ik_controller': [(*xy, height), DOWN], 'gripper_controller': [grip]}}
                    for xy in points
                ]
            )
            assert not any(terminated)
        assert all(each['franka']['controllers']['arm_ik_controller']['finished'] for each in env.get_observations())
        return [float(cube.get_pose()[0][2]) for cube in cubes]

    move(CUBES, 0.15, 'open', 110)
    move(CUBES, EDGE / 2, 'open', 50)
    move(CUBES, EDGE / 2, 'close', 15)
    assert min(move(CUBES, 0.2, 'close', 70)) > 0.18, 'lifted'
    assert min(move([PLACE] * 2, 0.2, 'close', 110)) > 0.18, 'carried'
    move([PLACE] * 2, EDGE / 2, 'close', 70)
    move([PLACE] * 2, EDGE / 2, 'open', 15)
    move([PLACE] * 2, 0.2, 'open', 60)
    for cube in cubes:
        position, _ = cube.get_pose()
        np.testing.assert_allclose(position, (*PLACE, EDGE / 2), atol=0.01)
        np.testing.assert_allclose(cube.get_linear_velocity(), 0.0, atol=1e-3)
    for name in env.runner.current_tasks:
        DataHub.set_episode_finished(name)
    _, _, terminated, *_ = env.step([{}, {}])
    assert all(terminated)
