"""Joint drives against formulas, and their targets and gains at run time."""

from typing import Any

import numpy as np
import pytest
from one_robot import joint, robot_of, run

from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives

INERTIA = 0.5  # of the wheel below about its hinge [kg m2]


@BaseRobot.register('SpringRobot')
class SpringRobot(BaseRobot):
    batched = True
    drives = Drives(stiffness=20.0, damping=2.0)


@pytest.fixture
def wheel(write_model) -> str:
    """A wheel of inertia 0.5 kg m2 on a vertical axle, without gravity's help; its motor gives 3 N·m."""
    axle = '<joint name="axle" axis="0 0 1" actuatorfrcrange="-3 3"/>'
    inertial = f'<inertial pos="0 0 0" mass="1" diaginertia="{INERTIA} {INERTIA} {INERTIA}"/>'
    return write_model('wheel', f'<worldbody><body name="wheel">{axle}{inertial}</body></worldbody>')


def step_response(t: np.ndarray, kp: float, kd: float) -> np.ndarray:
    """Underdamped answer of the wheel to a position target of 1 rad."""
    omega, zeta = np.sqrt(kp / INERTIA), kd / (2 * np.sqrt(kp * INERTIA))
    damped = omega * np.sqrt(1 - zeta**2)
    return 1 - np.exp(-zeta * omega * t) * (np.cos(damped * t) + zeta * omega / damped * np.sin(damped * t))


def follow(env: Any, steps: int, env_id: int = 0) -> np.ndarray:
    positions = []
    for _ in range(steps):
        env.step([None] * env.env_num)
        positions.append(joint(env, env_id)[0])
    return np.array(positions)


def test_position_drive_against_the_second_order_solution(start, wheel):
    env = start(wheel, 'SpringRobot', dt=1e-3, substeps=5)
    robot_of(env).articulation.view.set_targets([0], positions=[0.1])
    t = 5e-3 * np.arange(1, 201)
    # a step of 0.1 rad keeps the motor below its 3 N·m; the integrator is of first order: 1 % of the step
    assert follow(env, 200) == pytest.approx(0.1 * step_response(t, 20.0, 2.0), abs=1e-3)


@pytest.mark.parametrize('kind', ['positions', 'velocities', 'efforts'])
def test_a_target_that_is_too_large_for_the_engine_pulls_with_all_there_is(start, wheel, kind):
    env = start(wheel, 'SpringRobot', dt=1e-3, substeps=5, env_num=4)
    for env_id, target in enumerate([1e10, 1e11, 1e300, np.inf]):
        robot_of(env, env_id).articulation.view.set_targets([env_id], **{kind: [target]})
    for k in range(1, 11):
        *_, truncated, _ = env.step([None] * 4)
        assert not any(truncated)
        speeds = [robot_of(env, env_id).articulation.get_joint_velocities()[0] for env_id in range(4)]
        assert speeds == pytest.approx([3.0 / INERTIA * k * 5e-3] * 4)  # at 3 N·m, all of them


def test_gains_of_one_env_at_run_time(start, wheel):
    env, twin = (start(wheel, 'SpringRobot', dt=1e-3, substeps=5, env_num=3) for _ in range(2))
    robot_of(env, 1).articulation.set_gains([8.0], [1.0])
    for each in (env, twin):
        for env_id in range(3):
            robot_of(each, env_id).articulation.view.set_targets([env_id], positions=[0.1])
    assert [g.tolist() for g in robot_of(env, 1).articulation.get_gains()] == [[8.0], [1.0]]
    assert [g.tolist() for g in robot_of(env, 0).articulation.get_gains()] == [[20.0], [2.0]]
    t, softer = 5e-3 * np.arange(1, 101), []
    for _ in range(100):
        run(env, 1)
        run(twin, 1)
        assert joint(env, 0) == joint(twin, 0) and joint(env, 2) == joint(twin, 2)
        softer.append(joint(env, 1)[0])
    assert softer == pytest.approx(0.1 * step_response(t, 8.0, 1.0), abs=1e-3)
    env.reset([1])  # a new episode starts with the gains of the class
    assert [g.tolist() for g in robot_of(env, 1).articulation.get_gains()] == [[20.0], [2.0]]


@pytest.mark.slow
def test_velocity_drive(start, wheel):
    env = start(wheel, dt=1e-3)
    articulation = robot_of(env).articulation
    articulation.set_gains(0.0, 2.0)
    articulation.view.set_targets([0], velocities=[1.0])
    run(env, 200)
    assert joint(env)[1] == pytest.approx(1 - np.exp(-0.2 * 2.0 / INERTIA), rel=5e-3)
    run(env, 3000)
    assert joint(env)[1] == pytest.approx(1.0, rel=1e-5)


def test_position_velocity_and_effort_add_up_and_the_sum_is_clamped(start, wheel):
    env = start(wheel, 'SpringRobot', dt=1e-4)
    articulation = robot_of(env).articulation
    for targets, torque in [
        ({'positions': [0.1], 'velocities': [0.0], 'efforts': [0.5]}, 20 * 0.1 + 0.5),
        ({'velocities': [-0.6]}, 20 * 0.1 - 2 * 0.6 + 0.5),
        ({'efforts': [-50.0]}, -3.0),
        ({'positions': [9.0], 'efforts': [0.0]}, 3.0),
    ]:
        articulation.set_joint_velocities([0.0])
        q = joint(env)[0]
        articulation.view.set_targets([0], **targets)
        run(env, 1)
        torque = np.clip(torque - 20 * q, -3, 3) if abs(torque) < 3 else torque
        assert articulation.get_joint_efforts()[0] == pytest.approx(torque, rel=1e-3)
        assert joint(env)[1] == pytest.approx(torque * 1e-4 / INERTIA, rel=1e-3)


def test_nan_and_none_keep_the_targets_that_were_set_before(start, models):
    env = start(models['arm'], 'SpringRobot')
    view, batch = robot_of(env).articulation.view, env.runner.world.batch(0)[0]
    view.set_targets([0], positions=[0.3, 0.4], efforts=[1.0, 2.0])
    view.set_targets([0], positions=[np.nan, 0.7], velocities=[0.1, np.nan])
    view.set_targets([0], efforts=[[5.0]], joints=[1])
    assert batch.ctrl[0].tolist() == pytest.approx([0.3, 0.7, 0.1, 0.0, 1.0, 5.0])
    robot_of(env).articulation.set_joint_positions([0.2, -0.2])  # targets follow, so that it stays there
    assert batch.ctrl[0].tolist() == pytest.approx([0.2, -0.2, 0.1, 0.0, 1.0, 5.0])


def test_initial_joint_positions_are_the_first_targets(start, models, monkeypatch):
    monkeypatch.setattr(SpringRobot, 'home', {'elbow': 0.5})
    env = start(models['arm'], 'SpringRobot')
    assert robot_of(env).articulation.get_joint_positions().tolist() == [0.0, 0.5]
    batch, _ = env.runner.world.batch(0)
    assert batch.ctrl[0].tolist() == [0.0, 0.5, 0.0, 0.0, 0.0, 0.0]


def test_efforts_of_some_joints(make_env, make_task, make_robot):
    env = make_env(tasks=[make_task(robots=[make_robot(type='PassiveRobot')])], env_num=1)
    env.reset()
    articulation = env.runner.slot(0).task.robots['arm'].articulation
    elbow = ArticulationSubset(articulation, ['elbow'])
    action = elbow.make_articulation_action(joint_efforts=[0.3])
    assert (action.joint_positions, action.joint_velocities, action.get_dof_action(1)) == (None, None, {'effort': 0.3})
    elbow.apply_action(joint_efforts=[0.3])
    env.warm_up(1)
    assert articulation.get_joint_efforts().tolist() == pytest.approx([0.0, 0.3])
