"""Mistakes that the built-in controllers refuse, and how they say so."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.config import RobotCfg
from internutopia_extension.configs.controllers import ActuatorControllerCfg, JointControllerCfg

Run = Callable[..., Any]
MakeBuiltin = Callable[..., RobotCfg]

NAN = float('nan')
BAD_ACTIONS = [
    ('jetbot', 'move_by_speed', [1.0], 'expected 2 numbers (forward speed, rotation speed), got shape (1,)'),
    ('jetbot', 'move_by_speed', [1.0, NAN], 'a value that is not finite: [1.0, nan]'),
    ('jetbot', 'move_by_speed', [1.0, np.inf], 'not finite'),
    ('jetbot', 'move_by_speed', [1.0, 1e300], 'not finite'),
    ('jetbot', 'move_by_speed', 'fast', "got 'fast'"),
    ('jetbot', 'move_by_speed', None, 'expected 2 numbers'),
    ('jetbot', 'move_by_speed', ['1.0', '2.0'], "got ['1.0', '2.0']"),
    ('jetbot', 'move_by_speed', {'forward': 1.0}, "got {'forward': 1.0}"),
    ('jetbot', 'move_to_point', [1.0, 2.0, 0.0], 'expected numbers of shape (1, 3) ([goal position]), got shape (3,)'),
    ('jetbot', 'move_to_point', [(1.0, 2.0)], 'got shape (1, 2)'),
    ('jetbot', 'move_to_point', [(1.0, 2.0, NAN)], 'not finite'),
    ('jetbot', 'move_along_path', [[]], 'expected [path], a list of one or more points of 3 finite numbers each'),
    ('jetbot', 'move_along_path', [], 'expected [path]'),
    ('jetbot', 'move_along_path', [(1.0, 2.0, 3.0)], 'got [(1.0, 2.0, 3.0)]'),
    ('jetbot', 'move_along_path', [[(1.0, 2.0)]], 'expected [path]'),
    ('jetbot', 'move_along_path', [[(1.0, 2.0, 0.0), (1.0, 2.0)]], 'expected [path]'),
    ('jetbot', 'move_along_path', [[(1.0, 2.0, NAN)]], 'expected [path]'),
    ('jetbot', 'move_along_path', [(1.0, 2.0, 0.0), (3.0, 2.0, 0.0)], 'expected [path]'),
    ('jetbot', 'move_along_path', ['a path'], "got ['a path']"),
    ('jetbot', 'rotate', [(1.0, 0.0, 0.0)], 'expected numbers of shape (1, 4)'),
    ('jetbot', 'rotate', [(0.0, 0.0, 0.0, 0.0)], 'of a length other than zero'),
    ('jetbot', 'rotate', [(1e-30, 0.0, 0.0, 0.0)], 'of a length other than zero'),
    ('jetbot', 'rotate', [(1.0, 0.0, 0.0, -1e25)], 'a value that is beyond 1e+10'),
    ('jetbot', 'move_along_path', [[(1e25, 0.0, 0.0)]], 'none beyond 1e+10'),
    ('h1', 'joint_controller', [0.0] * 19, 'expected [positions, velocities] of 19 numbers each'),
    ('h1', 'joint_controller', [[0.0] * 18], 'expected 19 numbers (joint positions), got shape (18,)'),
    ('h1', 'joint_controller', [None, [NAN] * 19], 'expected 19 numbers (joint velocities)'),
    ('h1', 'joint_controller', None, 'got None'),
    ('h1', 'move_by_speed', [1.0, 0.0], 'expected 3 numbers (forward speed, lateral speed, rotation speed)'),
    ('h1', 'move_by_speed', [1.0, NAN, 0.0], 'a value that is not finite: [1.0, nan, 0.0]'),
    ('h1', 'recover', [], 'expected [position] or [position, orientation], got []'),
    ('h1', 'recover', [(1.0, 2.0)], 'expected 3 numbers (position)'),
    ('h1', 'recover', [(1.0, 2.0, 0.0), (0.0, 0.0, 0.0, 0.0)], 'expected an orientation of a length other than zero'),
    ('h1', 'recover', [(1.0, 2.0, 0.0), (0.0, 0.0, 1e-30, 0.0)], 'expected an orientation of a length other than zero'),
    ('motor_arm', 'actuators', [0.1, 0.2, 0.3], 'expected 2 numbers (controls of the actuators), got shape (3,)'),
]


@pytest.mark.parametrize('robot', ['jetbot', 'h1', 'motor_arm'])
def test_bad_actions_are_named_and_nothing_moves(run: Run, make_builtin: MakeBuiltin, robot: str) -> None:
    env = run(make_builtin(robot), env_num=3)
    before = env.get_observations()
    good = {'motor_arm': {'actuators': [0.5, 0.5]}}.get(robot, {})
    step_count = env.runner.get_current_time_step_index()
    for name, controller, action, message in BAD_ACTIONS:
        if name != robot:
            continue
        with pytest.raises(ValueError) as error:
            env.step([{robot: good}, {}, {robot: {controller: action}}])
        assert str(error.value).startswith(f'env 2, robot {robot!r}, controller {controller!r}: '), error.value
        assert message in str(error.value)
    assert env.runner.get_current_time_step_index() == step_count
    for was, now in zip(before, env.get_observations(), strict=True):
        np.testing.assert_array_equal(now[robot]['position'], was[robot]['position'])
        np.testing.assert_array_equal(now[robot]['joint_positions'], was[robot]['joint_positions'])


@pytest.mark.parametrize(('robot', 'controller', 'action', 'message'), BAD_ACTIONS)
def test_one_object_per_env_refuses_the_same(
    controllers_per_env: dict[str, Any], robot: str, controller: str, action: Any, message: str
) -> None:
    with pytest.raises(ValueError) as error:
        controllers_per_env[robot][controller].action_to_control(action)
    assert message in str(error.value)


@pytest.fixture
def controllers_per_env(run: Run, make_builtin: MakeBuiltin, robot: str) -> dict[str, Any]:
    """Controllers of the robot that a test is parametrized with, one object per env."""
    env = run(make_builtin(robot, per_env=True))
    return {robot: env.runner.current_tasks['0'].robots[robot].controllers}


def test_unknown_joints_are_named(run: Run, make_builtin: MakeBuiltin) -> None:
    wrong = JointControllerCfg(name='joints', joint_names=['shoulder', 'knee'])
    with pytest.raises(KeyError, match="no joint 'knee'; joints: shoulder, elbow"):
        run(make_builtin('arm', controllers=[wrong]))


def test_actuators_need_a_model_that_has_some(run: Run, make_builtin: MakeBuiltin) -> None:
    with pytest.raises(ValueError, match="controller 'actuators': robot 'arm.*' has joint drives"):
        run(make_builtin('arm', controllers=[ActuatorControllerCfg()]))
