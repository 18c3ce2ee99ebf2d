"""G1 and GR1 move their upper bodies while a policy has the legs: known targets from policies of known weights."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from internutopia.config import RobotCfg
from internutopia.core.vec_env import Env
from internutopia_extension.configs.joint_names import G1_GYM, GR1_54
from internutopia_extension.configs.robots import g1, gr1

Start = Callable[..., Env]


@dataclass
class Case:
    """A robot, and what InternUtopia 2 says about its action."""

    config: RobotCfg
    joints: list[str]  # of the policy of InternUtopia 2: 12 legs, then the upper body
    height: float
    default: np.ndarray


def _elbows_bent() -> np.ndarray:
    default = np.zeros(42)
    default[[9, 27]] = -1.25
    return default


CASES = {
    'g1': Case(
        g1.G1RobotCfg(position=(0.0, 0.0, 0.785), controllers=[g1.move_by_speed_cfg]), G1_GYM, 0.74, np.zeros(15)
    ),
    'gr1': Case(
        gr1.GR1RobotCfg(position=(0.0, 0.0, 0.898), controllers=[gr1.move_by_speed_cfg]), GR1_54, 0.9, _elbows_bent()
    ),
}
LEGS = np.linspace(-0.3, 0.3, 12)  # targets at a forward speed of 0; the first one grows with it


@pytest.fixture
def start(run: Start, write_policy: Callable[..., str]) -> Start:
    """Starts envs of a robot whose policy drives `joints`, the legs unless told otherwise."""

    def start(name: str, env_num: int = 1, joints: list[str] | None = None, **fields: Any) -> Env:
        case = CASES[name]
        joints = joints or case.joints[:12]
        policy = write_policy([(np.eye(3, len(joints)), np.resize(LEGS, len(joints)))], joint_names=joints)
        [controller] = case.config.controllers or []
        controller = controller.update(policy_weights_path=policy, **fields)
        return run(case.config.update(controllers=[controller]), env_num=env_num)

    return start


def controller_of(env: Env) -> Any:
    [robot] = next(iter(env.runner.current_tasks.values())).robots.values()
    assert robot.batch is not None
    return robot.batch.robot.controllers['move_by_speed']


def targets(env: Env, case: Case, *actions: Any) -> tuple[np.ndarray, np.ndarray]:
    """Targets of the legs `(n, 12)` and of the upper body `(n, k)` after a step with these actions."""
    controller = controller_of(env)
    parsed = controller.parse_actions(actions)
    control = controller.action_to_control(parsed, np.arange(len(actions)))
    order = [controller.config.joint_names.index(joint) for joint in case.joints]
    rows = control.joint_positions[:, order]
    return rows[:, :12], rows[:, 12:]


@pytest.mark.parametrize('name', CASES)
def test_what_is_left_out_is_the_default(start: Start, name: str) -> None:
    env, case = start(name), CASES[name]
    forms = [
        [0.1, 0, 0],
        (0.1, 0.0, 0.0),
        np.array([0.1, 0, 0]),
        [0.1, 0, 0, None],
        [0.1, 0, 0, case.height],
        [0.1, 0, 0, None, None],
        [0.1, 0, 0, case.height, case.default],
        [0.1, 0, 0, None, case.default.tolist()],
    ]
    for form in forms:
        legs, upper = targets(env, case, form)
        np.testing.assert_allclose(legs, [LEGS + [0.1, *[0] * 11]], atol=1e-6)
        np.testing.assert_allclose(upper, [case.default], atol=1e-6)


@pytest.mark.parametrize('name', CASES)
def test_upper_body_follows_the_action_at_every_step_and_returns(start: Start, name: str) -> None:
    """The policy need not act for that; envs with and without targets mix."""
    env, case = start(name, env_num=2), CASES[name]
    wave = np.linspace(-0.4, 0.4, len(case.default))
    for sign in (1, -1):
        legs, upper = targets(env, case, [0.2, 0, 0, None, sign * wave], [0, 0, 0])
        np.testing.assert_allclose(upper, [sign * wave, case.default], atol=1e-6)
        np.testing.assert_allclose(legs[:, 0] - LEGS[0], [0.2, 0.0], atol=1e-6)
    _, upper = targets(env, case, [0, 0, 0], [0, 0, 0])
    np.testing.assert_allclose(upper, [case.default] * 2, atol=1e-6)


def test_joints_get_there(start: Start) -> None:
    env, case = start('g1'), CASES['g1']
    upper = np.zeros(15)
    upper[[1, 8]] = -0.8  # shoulder pitches
    for _ in range(20):
        env.step([{'g1': {'move_by_speed': [0, 0, 0, None, upper]}}])
    articulation = next(iter(env.runner.current_tasks.values())).robots['g1'].articulation
    reached = dict(zip(articulation.dof_names, articulation.get_joint_positions(), strict=True))
    for joint in ('left_shoulder_pitch_joint', 'right_shoulder_pitch_joint'):
        assert case.joints[12:].index(joint) in (1, 8)
        assert reached[joint] == pytest.approx(-0.8, abs=0.1)


@pytest.mark.parametrize('name', CASES)
def test_another_height_is_warned_of_once(start: Start, name: str, caplog: pytest.LogCaptureFixture) -> None:
    env, case = start(name, env_num=2), CASES[name]
    caplog.clear()  # of what is said about the policy, which stands with straight knees
    with caplog.at_level(logging.WARNING, 'internutopia'):
        targets(env, case, [0, 0, 0, case.height], [0, 0, 0])
        assert not caplog.records
        for _ in range(2):
            targets(env, case, [0, 0, 0, 0.6], [0, 0, 0])
    assert len(caplog.records) == 1 and f'walks at a fixed height of {case.height:g} m' in caplog.text


def test_joints_of_the_upper_body_that_the_policy_drives_are_left_to_it(start: Start) -> None:
    case = CASES['g1']
    env = start('g1', joints=case.joints[:13])
    for _ in range(3):  # also when the policy does not act
        _, upper = targets(env, case, [0, 0, 0, None, np.full(15, 0.5)])
        np.testing.assert_allclose(upper, [[LEGS[0], *[0.5] * 14]], atol=1e-6)


@pytest.mark.parametrize(
    ('action', 'message'),
    [
        ([0, 0], 'expected [forward speed, lateral speed, rotation speed], then base height and 15 upper-body'),
        ([0, 0, 0, None, None, 0], 'expected [forward speed'),
        (None, 'got None'),
        ([0, np.nan, 0], 'expected 3 numbers (forward speed, lateral speed, rotation speed), got a value that is not'),
        ([0, 0, 0, np.inf], 'expected 1 numbers (base height), got a value that is not finite'),
        ([0, 0, 0, 'high'], 'expected 1 numbers (base height)'),
        ([0, 0, 0, None, np.zeros(14)], 'expected 15 numbers (upper-body joint targets), got shape (14,)'),
        ([0, 0, 0, None, [np.nan] * 15], '(upper-body joint targets), got a value that is not finite'),
        ([None, 0, 0], 'expected 3 numbers'),
    ],
)
def test_bad_actions_are_named(start: Start, action: Any, message: str) -> None:
    env = start('g1', env_num=2)
    before = env.get_observations()[0]['g1']['position']
    with pytest.raises(ValueError) as error:
        env.step([{'g1': {'move_by_speed': [0.5, 0, 0]}}, {'g1': {'move_by_speed': action}}])
    assert str(error.value).startswith("env 1, robot 'g1', controller 'move_by_speed': ")
    assert message in str(error.value)
    np.testing.assert_array_equal(env.get_observations()[0]['g1']['position'], before)


def test_joint_names_must_have_the_upper_body(start: Start) -> None:
    fewer = [joint for joint in G1_GYM if joint != 'left_elbow_joint']
    with pytest.raises(ValueError, match="it moves joint 'left_elbow_joint', which is not in joint_names"):
        start('g1', joint_names=fewer)


def test_arms_swing_with_the_legs_unless_they_are_told_otherwise(run: Start, write_policy: Callable[..., str]) -> None:
    case = CASES['g1']
    legs, upper = case.joints[:12], case.joints[12:]
    multipliers = {'left_hip_pitch_joint': -5.0, 'right_hip_pitch_joint': 5.0}
    mimic = {
        'left_shoulder_pitch_joint': {'multipliers': multipliers, 'offset': 0.1},
        'left_elbow_joint': {'offset': 1.2},
    }
    policy = write_policy([(np.eye(3, 12), LEGS)], joint_names=legs, mimic=mimic)
    [controller] = case.config.controllers or []
    env = run(case.config.update(controllers=[controller.update(policy_weights_path=policy)]), env_num=2)
    own = np.linspace(-0.2, 0.2, 15)
    driven, above = targets(env, case, [0.3, 0.0, 0.0], [0.3, 0.0, 0.0, None, own.tolist()])
    hips = driven[:, [legs.index(f'{side}_hip_pitch_joint') for side in ('left', 'right')]]
    swung = np.zeros(15)
    swung[upper.index('left_shoulder_pitch_joint')] = 0.1 + 5.0 * (hips[0, 1] - hips[0, 0])
    swung[upper.index('left_elbow_joint')] = 1.2
    assert abs(hips[0, 1] - hips[0, 0]) > 0.02
    np.testing.assert_allclose(above, [swung, own], atol=1e-6)
