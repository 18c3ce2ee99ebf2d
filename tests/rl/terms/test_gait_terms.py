"""Terms about feet, on a robot whose feet are put where a test wants them: known answers."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from internutopia.core.robot.robot import BaseRobot
from internutopia.rl import VectorEnv
from internutopia.rl.state import RobotState
from internutopia.rl.terms import gait, look_up_term, registered_terms
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.robots.generic import GenericRobot

# A block that slides along x and carries two feet on vertical slides; at 0 their soles are 1 cm above the ground
FOOT = """
<body name="{name}" pos="0 {y} -0.44">
  <joint name="{name}" type="slide" axis="0 0 1"/><geom size="0.05" mass="0.1"/>
</body>
"""
STILTS = f"""
<worldbody>
  <body name="block" pos="0 0 0.5"><joint name="way" type="slide" axis="1 0 0"/><geom size="0.05" mass="1"/>
    {FOOT.format(name='left', y=0.1)}{FOOT.format(name='right', y=-0.1)}
  </body>
</worldbody>
"""
UP, DOWN = 0.05, -0.05  # m, targets of the slides
FEET = [(DOWN, DOWN), (DOWN, UP), (UP, DOWN), (UP, UP)]  # of the envs
TOUCH = np.array(FEET) == DOWN
SPEEDS = np.array([0.2, -0.3, 0.4, 0.5])  # m/s along x
GAIT = {'name': 'go', 'period': 0.8, 'offsets': (0.0, 0.5)}  # 40 steps; a foot stands for 22 of them


@BaseRobot.register('Stilts')
class Stilts(GenericRobot):
    batched = True
    feet = ('left', 'right')


# A block on two capsules; its centre of mass is ahead of their middle and left of it, but above what it stands on:
# 0.2 m to the ends, 0.1 m to the sides. The second foot touches nothing
STOOL = """
<worldbody>
  <body name="block" pos="0 0 0.1"><freejoint/>
    <inertial pos="0.14 0.07 0" mass="2" diaginertia="0.01 0.01 0.01"/>
    <geom type="capsule" size="0.02" fromto="-0.2 0.1 -0.08 0.2 0.1 -0.08"/>
    <geom type="capsule" size="0.02" fromto="-0.2 -0.1 -0.08 0.2 -0.1 -0.08"/>
    <body name="other" pos="0.3 0.04 0.2"><joint name="other" axis="0 0 1" damping="1"/>
      <inertial pos="0 0 0" mass="0.001" diaginertia="1e-5 1e-5 1e-5"/>
    </body>
  </body>
</worldbody>
"""


@BaseRobot.register('Stool')
class Stool(GenericRobot):
    batched = True
    feet = ('block', 'other')


@pytest.fixture
def stool(make_learner: Callable[..., VectorEnv], write_model: Callable[[str, str], str]) -> VectorEnv:
    """Four of them, on the ground."""
    body = GenericRobotCfg(
        type='Stool',
        name='stool',
        usd_path=write_model('stool', STOOL),
        position=(0.0, 0.0, 0.1),
        stiffness=1.0,
        controllers=[JointControllerCfg(name='joints', joint_names=['other'])],
    )
    envs = make_learner(env_num=4, body=body, commands={'go': {'term': 'velocity', 'params': {'standing': 0.0}}})
    envs.reset()
    return envs


@pytest.fixture
def state(make_learner: Callable[..., VectorEnv], write_model: Callable[[str, str], str]) -> Iterator[RobotState]:
    """Four robots with their feet as `FEET` says, sliding at `SPEEDS`, told to walk."""
    body = GenericRobotCfg(
        type='Stilts',
        name='stilts',
        usd_path=write_model('stilts', STILTS),
        fixed_base=True,
        stiffness=400.0,
        damping=20.0,
        controllers=[JointControllerCfg(name='joints', joint_names=['left', 'right'])],
    )
    envs = make_learner(env_num=4, body=body, commands={'go': {'term': 'velocity', 'params': {'standing': 0.0}}})
    envs.reset()
    for _ in range(25):
        envs.step(np.array(FEET, np.float32))
    state = envs.core.state
    state.articulation.set_joint_velocities(SPEEDS[:, None], [0])
    state.commands['go'][:] = [0.5, 0.0, 0.0]
    state.changed()
    yield state


def value(state: RobotState, kind: Any, term: str, /, **params: Any) -> np.ndarray:
    result = np.asarray(look_up_term(kind, term, params)(state))
    assert result.dtype == np.float32
    return result


def test_every_term_about_feet_is_tested_here() -> None:
    terms = {name for name, function in registered_terms('reward').items() if function.__module__ == gait.__name__}
    costs = {
        f'{name}_cost'
        for name in (
            *(
                'feet_near',
                'foothold',
                'low_links',
                'path_error',
                'slip',
                'stance_bend',
                'standing_drift',
                'standing_motion',
            ),
            *('standing_posture', 'swing_bend', 'swing_height'),
        )
    }
    assert terms == {'gait_contact', 'standing'} | costs


def test_feet_contacts(state: RobotState) -> None:
    assert value(state, 'observation', 'feet_contacts').tolist() == TOUCH.astype(float).tolist()
    assert (state.feet_forces[..., 2] > 1.0).tolist() == TOUCH.tolist(), 'the ground pushes up'


def test_positions_and_velocities_of_feet(state: RobotState) -> None:
    z = state.feet_positions[..., 2]
    np.testing.assert_allclose(z[~TOUCH], 0.06 + UP, atol=0.005)  # m
    np.testing.assert_allclose(z[TOUCH], 0.05, atol=0.005)  # its radius
    np.testing.assert_allclose(state.feet_positions[..., 1], [[0.1, -0.1]] * 4, atol=1e-6)
    np.testing.assert_allclose(state.feet_velocities[..., 0], np.stack([SPEEDS] * 2, axis=1), rtol=1e-5)


def test_slip_is_the_squared_speed_of_feet_on_the_ground(state: RobotState) -> None:
    np.testing.assert_allclose(value(state, 'reward', 'slip_cost'), SPEEDS**2 * TOUCH.sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize(('distance', 'cost'), [(0.15, 0.0), (0.2, 0.0), (0.5, 0.3)])
def test_feet_shall_not_come_near_each_other(state: RobotState, distance: float, cost: float) -> None:
    # they are 0.2 m apart, one beside the other
    np.testing.assert_allclose(value(state, 'reward', 'feet_near_cost', distance=distance), [cost] * 4, atol=1e-6)


@pytest.mark.parametrize('yaw', [0.0, 0.5, -2.0])
def test_feet_one_behind_the_other_are_not_apart(stool: VectorEnv, yaw: float) -> None:
    state = stool.core.state
    state.articulation.set_pose([[0.0, 0.0, 0.1]] * 4, [[math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)]] * 4)
    state.changed()
    # 30 cm ahead and 4 cm aside
    np.testing.assert_allclose(value(state, 'reward', 'feet_near_cost', distance=0.1), [0.06] * 4, atol=1e-6)


def test_who_needs_the_ends_of_its_feet_falls_when_they_are_smaller(stool: VectorEnv) -> None:
    state = stool.core.state
    for env_id, sizes in enumerate(({}, {'length': (0.5, 0.5)}, {'width': (0.5, 0.5)}, {'length': (0.8, 0.8)})):
        with state.rng.for_envs(ids := np.array([env_id])):
            look_up_term('randomization', 'foot_size', sizes)(state, ids)
    for _ in range(50):
        stool.step(np.zeros((4, 1), np.float32))
    leans = state.projected_gravity[:, :2]
    assert np.abs(leans[[0, 3]]).max() < 0.01
    assert leans[1, 0] > 0.3, 'over its toes'
    assert leans[2, 1] > 0.3, 'over its left edge'


def test_each_foot_has_its_place_in_the_clock(state: RobotState) -> None:
    with pytest.raises(ValueError, match=r'offsets=\[0.0\]: one for each foot is needed, '):
        value(state, 'reward', 'gait_contact', **GAIT | {'offsets': [0.0]})
    with pytest.raises(ValueError, match=r"'foothold_cost': sole=\[\]: Value should have at least 1 item"):
        value(state, 'reward', 'foothold_cost', sole=[])
    with pytest.raises(ValueError, match=r"'gait_contact': stance=1.0: Input should be less than 1"):
        value(state, 'reward', 'gait_contact', **GAIT | {'stance': 1.0})


@pytest.mark.parametrize(
    ('step', 'stands'),
    [
        (0, (True, True)),  # phases 0 and 0.5
        (4, (True, False)),  # 0.1 and 0.6
        (21, (True, True)),  # 0.525 and 0.025
        (30, (False, True)),  # 0.75 and 0.25
        (70, (False, True)),  # the same a period later
    ],
)
def test_gait_gives_1_for_feet_that_do_as_the_clock_says_and_takes_1_for_others(
    state: RobotState, step: int, stands: tuple[bool, bool]
) -> None:
    state.steps[:] = step
    wanted = np.where(TOUCH == stands, 1.0, -1.0).sum(axis=1)
    assert value(state, 'reward', 'gait_contact', **GAIT).tolist() == wanted.tolist()


def test_each_env_has_its_own_clock(state: RobotState) -> None:
    state.steps[:] = [4, 4, 30, 30]
    assert value(state, 'reward', 'gait_contact', **GAIT).tolist() == [0, 2, 2, 0]


def test_who_is_told_to_stand_keeps_its_feet_down(state: RobotState) -> None:
    state.steps[:] = 4
    state.commands['go'][:] = [[0.05, 0.0, 0.05], [0.0, 0.0, 0.0], [0.0, 0.0, 0.2], [0.0, -0.2, 0.0]]
    assert value(state, 'reward', 'gait_contact', **GAIT).tolist() == [2, 0, -2, 0]


def test_a_swinging_foot_follows_a_half_sine(state: RobotState) -> None:
    params = {**GAIT, 'height': 0.08, 'ground': 0.05}
    z = state.feet_positions[..., 2].astype(float)
    state.steps[:] = 31  # phases 0.775, in the middle of its swing, and 0.275
    wanted = np.array([0.05 + 0.08, 0.05])
    cost = value(state, 'reward', 'swing_height_cost', **params)
    np.testing.assert_allclose(cost, np.square(z - wanted).sum(axis=1), rtol=1e-4)
    state.steps[:] = 4
    state.changed()  # phases 0.1 and 0.6, a ninth of its swing
    wanted = np.array([0.05, 0.05 + 0.08 * np.sin(np.pi * 0.05 / 0.45)])
    cost = value(state, 'reward', 'swing_height_cost', **params)
    np.testing.assert_allclose(cost, np.square(z - wanted).sum(axis=1), rtol=1e-4)
    state.commands['go'][:] = 0.0
    cost = value(state, 'reward', 'swing_height_cost', **params)
    np.testing.assert_allclose(cost, np.square(z - 0.05).sum(axis=1), rtol=1e-4)


def test_a_foothold_is_worse_the_more_of_a_sole_has_nothing_below_it(state: RobotState) -> None:
    # 0, 2, 4 and 6 cm above the ground when a foot stands
    sole = [(0.0, 0.0, z - 0.05) for z in (0.0, 0.02, 0.04, 0.06)]
    for margin, share in ((0.01, 0.75), (0.03, 0.5), (0.07, 0.0)):
        cost = value(state, 'reward', 'foothold_cost', sole=sole, margin=margin)
        np.testing.assert_allclose(cost, share * TOUCH.sum(axis=1))


def test_a_swinging_leg_bends_as_far_as_a_half_sine_or_farther(state: RobotState) -> None:
    params = {**GAIT, 'joints': ['left', 'right'], 'bend': 0.03}
    q = state.joint_positions[:, 1:].astype(float)  # near 0.05 for lifted feet, -0.01 for the others
    state.steps[:] = 31  # the left one in the middle of its swing
    lacking = np.maximum(0.03 - q[:, 0], 0.0)  # the right one stands, bent or straight
    cost = value(state, 'reward', 'swing_bend_cost', **params)
    np.testing.assert_allclose(cost, np.square(lacking), rtol=1e-4)
    assert (lacking > 0.035).tolist() == TOUCH[:, 0].tolist() and (lacking[2:] == 0.0).all()


def test_a_standing_leg_is_bent_no_farther_than_it_may(state: RobotState) -> None:
    params = {**GAIT, 'joints': ['left', 'right'], 'bend': 0.02}
    q = state.joint_positions[:, 1:].astype(float)
    state.steps[:] = 31  # the left one swings
    excess = np.maximum(q[:, 1] - 0.02, 0.0)
    np.testing.assert_allclose(value(state, 'reward', 'stance_bend_cost', **params), excess**2, rtol=1e-4)
    assert excess.max() > 0.02
    state.commands['go'][:] = 0.0  # nor does that
    both = np.square(np.maximum(q - 0.02, 0.0)).sum(axis=1)
    np.testing.assert_allclose(value(state, 'reward', 'stance_bend_cost', **params), both, rtol=1e-4)


def test_who_is_told_to_stand_pays_for_other_poses_and_for_motion_and_who_walks_does_not(state: RobotState) -> None:
    posture = {'name': 'go', 'joints': ['left', 'right'], 'positions': {'right': UP}}
    assert not value(state, 'reward', 'standing_posture_cost', **posture).any()
    assert not value(state, 'reward', 'standing_motion_cost', name='go').any()
    state.commands['go'][:2] = [0.0, 0.05, 0.0]
    left, right = state.joint_positions[:2, 1:].T.astype(float)  # home is at 0
    cost = value(state, 'reward', 'standing_posture_cost', **posture)
    np.testing.assert_allclose(cost, [*left**2 + (right - UP) ** 2, 0.0, 0.0], rtol=1e-4)
    motion = np.square(state.joint_velocities.astype(float)).sum(axis=1)
    cost = value(state, 'reward', 'standing_motion_cost', name='go')
    np.testing.assert_allclose(cost, [*motion[:2], 0.0, 0.0], rtol=1e-4)
    np.testing.assert_array_equal(value(state, 'reward', 'standing', name='go'), [1.0, 1.0, 0.0, 0.0])


def test_who_is_told_to_stand_pays_for_drifting_and_turning(stool: VectorEnv) -> None:
    state = stool.core.state
    state.articulation.set_linear_velocity(np.tile([0.3, -0.4, 0.7], (4, 1)))
    state.articulation.set_angular_velocity(np.tile([0.0, 0.0, -0.2], (4, 1)))
    state.commands['go'][:] = [[0.0, 0.05, 0.0], [0.0, 0.0, 0.0], [0.3, -0.4, 0.0], [0.0, 0.0, 0.5]]
    state.changed()
    np.testing.assert_allclose(
        value(state, 'reward', 'standing_drift_cost', name='go'), [0.7, 0.7, 0.0, 0.0], rtol=1e-5
    )


def test_the_error_along_the_commanded_path_adds_up_and_decays(stool: VectorEnv) -> None:
    """A base that turns by 90 degrees to the left moves along y where it is commanded to walk ahead."""
    state, dt = stool.core.state, stool.core.step_dt
    velocity, command = np.array([0.0, 0.5]), np.array([[0.5, 0.0], [0.0, 0.0], [0.0, 0.5], [0.5, 0.0]])
    turns = np.array([0.0, 0.0, 0.0, 0.4])  # rad/s
    errors = velocity - np.stack([-command[:, 1], command[:, 0]], axis=-1)
    params, decay = {'name': 'go', 'horizon': 0.5, 'limit': 0.15}, math.exp(-dt / 0.5)
    expected = np.zeros(4)
    for count in range(1, 31):
        state.articulation.set_world_pose(
            orientation=np.tile([math.cos(math.pi / 4), 0, 0, math.sin(math.pi / 4)], (4, 1))
        )
        state.articulation.set_linear_velocity(np.tile([*velocity, 0.0], (4, 1)))
        state.articulation.set_angular_velocity(np.array([[0.0, 0.0, 0.4]] * 4))
        state.commands['go'][:] = np.column_stack([command, 0.4 - turns])
        state.changed()
        total = dt * (1 - decay**count) / (1 - decay)
        expected = np.minimum(total * np.hypot(*errors.T), 0.15) + np.minimum(total * turns, 0.15)
        np.testing.assert_allclose(value(state, 'reward', 'path_error_cost', **params), expected, rtol=1e-4, atol=1e-6)
    assert expected[0] == 0.0 and expected[1] == 0.15 and 0.0 < expected[3] < 0.15


def test_links_near_the_ground_cost_what_they_lack(state: RobotState) -> None:
    heights = np.where(TOUCH, 0.05, 0.06 + UP)  # of their origins
    cost = value(state, 'reward', 'low_links_cost', links=['left', 'right'], height=0.1)
    np.testing.assert_allclose(cost, np.maximum(0.1 - heights, 0.0).sum(axis=1), atol=0.01)
    assert not value(state, 'reward', 'low_links_cost', links=['block'], height=0.4).any()


def test_the_clock_stops_or_says_so_where_robots_are_told_to_stand(state: RobotState) -> None:
    state.steps[:] = [3, 3, 10, 48 * 3600 * 24]
    state.changed()
    state.commands['go'][:] = [[0.5, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, -0.5], [0.5, 0.5, 0.0]]
    clock = look_up_term('observation', 'gait_phase', {'name': 'go', 'period': 0.8})(state)
    turned = 2.0 * np.pi * state.steps * state.step_dt / 0.8
    wanted = np.stack([np.cos(turned), np.sin(turned)], axis=-1) * [[1.0], [0.0], [1.0], [1.0]]
    np.testing.assert_allclose(clock, wanted, atol=1e-12)
    runs_on = look_up_term('observation', 'gait_phase', {'name': 'go', 'period': 0.8, 'stops': False})(state)
    wanted = np.stack([np.cos(turned), np.sin(turned), [0.0, 1.0, 0.0, 0.0]], axis=-1)
    np.testing.assert_allclose(runs_on, wanted, atol=1e-12)


def test_a_new_episode_starts_without_contact(make_learner: Callable[..., VectorEnv], state: RobotState) -> None:
    assert state.feet_contacts.any()
    envs = make_learner(env_num=1)
    envs.reset()
    with pytest.raises(ValueError, match="robot 'hopper': its class names no feet"):
        _ = envs.core.state.feet_positions
