"""Physics against formulas: falls, swings, slides, frames, velocities and masses."""

from typing import Any

import numpy as np
import pytest
from one_robot import joint, robot_of, run

from internutopia.core.robot.robot import BaseRobot

G = 9.81


@BaseRobot.register('BoltedRobot')
class BoltedRobot(BaseRobot):
    batched = True
    fixed_base = True


@BaseRobot.register('FloatingRobot')
class FloatingRobot(BaseRobot):
    batched = True
    fixed_base = False


@pytest.fixture
def cart(write_model) -> str:
    """A mass of 2 kg on a rail along x."""
    rail = '<joint name="rail" type="slide" axis="1 0 0"/>'
    return write_model('cart', f'<worldbody><body name="cart">{rail}<geom size="0.1" mass="2"/></body></worldbody>')


def test_free_fall(start, make_block):
    env = start(None, dt=0.002, objects=[make_block('stone', 3.0, position=(0, 0, 10), orientation=(0.8, 0.6, 0, 0))])
    stone = env.runner.get_obj('stone')
    run(env, 500)
    # the engine updates velocity first: n steps fall by g dt^2 n (n + 1) / 2
    assert 10 - stone.get_pose()[0][2] == pytest.approx(G * 0.002**2 * 500 * 501 / 2, rel=1e-6)
    assert stone.get_linear_velocity() == pytest.approx([0, 0, -G], rel=1e-6)
    assert stone.get_angular_velocity() == pytest.approx([0, 0, 0], abs=1e-9)
    assert stone.get_pose()[1] == pytest.approx([0.8, 0.6, 0, 0])


def period(env: Any, dt: float) -> float:
    """Mean time between downward zero crossings of the first joint [s]."""
    crossings, last = [], 1.0
    for step in range(int(6 / dt)):
        env.step([None])
        now = joint(env)[0]
        if last > 0 >= now:
            crossings.append((step + last / (last - now)) * dt)
        last = now
    return float(np.mean(np.diff(crossings)))


@pytest.mark.slow
@pytest.mark.parametrize('scale', [1.0, 2.25])
def test_period_of_a_pendulum(start, write_model, scale):
    length, mass, inertia, amplitude = 0.4, 1.5, 0.02, 0.2
    pendulum = write_model(
        'pendulum',
        f'<worldbody><body name="bob"><joint name="pivot" axis="0 1 0" limited="false"/>'
        f'<inertial pos="0 0 -{length}" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/></body></worldbody>',
    )
    env = start(pendulum, dt=1 / 400, position=(0, 0, 2), scale=(scale,) * 3)
    robot_of(env).articulation.set_joint_positions([amplitude])
    about_pivot = (inertia + mass * length**2) * scale**2
    small = 2 * np.pi * np.sqrt(about_pivot / (mass * G * length * scale))
    assert period(env, 1 / 400) == pytest.approx(small * (1 + amplitude**2 / 16), rel=1e-3)


@pytest.mark.parametrize(('slope', 'friction'), [(0.2, 0.3), (0.4, 0.3), (0.3, 0.0)])
def test_a_block_on_a_slope_sticks_or_slips(start, write_model, slope, friction):
    # the slope is level and gravity leans; elliptic cones, so that friction is as large along x as in Coulomb's law
    surface = f'friction="{friction} 0 0"'
    scene = write_model(
        'slope',
        f'<option gravity="{G * np.sin(slope)} 0 {-G * np.cos(slope)}" cone="elliptic" impratio="100"/><worldbody>'
        f'<geom type="plane" size="9 9 1" {surface}/><body name="block" pos="0 0 0.1"><freejoint/>'
        f'<geom type="box" size="0.2 0.2 0.1" {surface}/></body></worldbody>',
    )
    env = start(None, scene=scene, dt=0.002)
    block = env.runner.get_obj('block')
    run(env, 100)
    before = block.get_linear_velocity()[0]
    run(env, 200)
    acceleration = (block.get_linear_velocity()[0] - before) / 0.4
    expected = max(0.0, G * (np.sin(slope) - friction * np.cos(slope)))
    assert acceleration == pytest.approx(expected, rel=0.04, abs=0.005)  # contacts are soft
    assert block.get_pose()[0][2] == pytest.approx(0.1, abs=1e-3)


def test_mass_of_one_env_at_run_time(start, cart):
    env = start(cart, dt=0.01, env_num=3)
    body = robot_of(env, 1).articulation.body('cart')
    assert body.get_mass() == pytest.approx(2.0)
    body.set_mass(5.0)
    for env_id in range(3):
        robot_of(env, env_id).articulation.set_joint_efforts([10.0])
    run(env, 10)
    assert [joint(env, i)[1] for i in range(3)] == pytest.approx([10 / 2 * 0.1, 10 / 5 * 0.1, 10 / 2 * 0.1])
    assert [robot_of(env, i).articulation.body('cart').get_mass() for i in range(3)] == pytest.approx([2, 5, 2])
    env.reset([1])
    assert robot_of(env, 1).articulation.body('cart').get_mass() == pytest.approx(2.0)
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match='positive|finite'):
            robot_of(env, 1).articulation.body('cart').set_mass(wrong)


def test_inertia_follows_the_mass(start, write_model):
    motor = '<joint name="axle" axis="0 0 1"/><geom type="box" size="0.2 0.1 0.1" mass="2"/>'
    env = start(write_model('rotor', f'<worldbody><body name="rotor">{motor}</body></worldbody>'), dt=0.01, env_num=2)
    robot_of(env, 1).articulation.body('rotor').set_mass(6.0)
    for env_id in range(2):
        robot_of(env, env_id).articulation.set_joint_efforts([0.1])
    run(env, 10)
    inertia = 2 * (0.4**2 + 0.2**2) / 12
    assert [joint(env, i)[1] for i in range(2)] == pytest.approx([0.01 / inertia, 0.01 / (3 * inertia)], rel=1e-5)


# --- frames, teleports, velocities -----------------------------------------------------------------------------------


def rotation(q: np.ndarray) -> np.ndarray:
    w, x, y, z = np.asarray(q, np.float64)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@pytest.mark.parametrize('kind', ['FloatingRobot', 'BoltedRobot'])
def test_velocities_of_links_against_differences_of_poses(start, models, kind):
    # 32-bit poses are good to about 2e-7, so that a step of 0.2 ms resolves velocities to 1e-3
    dt = 2e-4
    env = start(models['hopper'], kind, dt=dt, orientation=(0.7, 0.1, -0.3, 0.5), position=(0.3, -0.4, 2.0))
    robot = robot_of(env)
    robot.articulation.set_world_velocity([0.5, -1.0, 2.0, 1.0, 2.0, -1.5])
    robot.articulation.set_joint_velocities([2.0, -3.0])
    run(env, 20)
    for name in ('torso', 'leg', 'tail'):
        body = robot.articulation.body(name)
        old_position, old_quat = body.get_pose()
        run(env, 1)
        position, quat = body.get_pose()
        angular = body.get_angular_velocity()
        assert (position - old_position) / dt == pytest.approx(body.get_linear_velocity(), abs=0.02)
        turned = rotation(quat) @ rotation(old_quat).T
        spin = np.array([turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]]) / 2
        assert spin / dt == pytest.approx(angular, abs=0.02)
        if name != 'torso' or kind == 'FloatingRobot':
            assert np.linalg.norm(angular) > 1


def test_teleporting_a_floating_robot(start, models):
    env = start(models['hopper'], 'FloatingRobot', env_num=2)
    robot = robot_of(env, 1)
    articulation = robot.articulation
    articulation.set_joint_positions([0.3, -0.2])
    others = [robot_of(env, 0).get_obs()[key].tolist() for key in ('position', 'orientation')]
    articulation.set_pose([1, 2, 3], [0, 0, 0, 2])  # any length will do
    assert [v.tolist() for v in robot.get_pose()] == [[1, 2, 3], [0, 0, 0, 1]]
    assert articulation.get_joint_positions() == pytest.approx([0.3, -0.2])
    assert articulation.body('leg').get_pose()[0] == pytest.approx([1 - 0.02, 2, 3 - 0.05])
    articulation.set_pose(orientation=[1, 0, 0, 0])
    assert [v.tolist() for v in robot.get_pose()] == [[1, 2, 3], [1, 0, 0, 0]]
    articulation.set_world_pose(position=[0, 5, 3])
    assert robot.get_pose()[0].tolist() == [0, 0, 3] and articulation.get_world_pose()[0].tolist() == [0, 5, 3]
    articulation.set_world_velocity([1, 2, 3, 4, 5, 6])
    assert articulation.get_linear_velocity() == pytest.approx([1, 2, 3])
    assert articulation.get_angular_velocity() == pytest.approx([4, 5, 6])
    articulation.set_linear_velocity([0, 0, 1])
    assert articulation.get_angular_velocity() == pytest.approx([4, 5, 6])
    assert [robot_of(env, 0).get_obs()[key].tolist() for key in ('position', 'orientation')] == others
    assert env.get_observations()[1]['robot']['position'].tolist() == [0, 0, 3]


def test_teleporting_a_bolted_robot(start, models):
    env = start(models['arm'], env_num=2)
    arm = robot_of(env, 1).articulation
    arm.set_pose([1, 2, 3], [np.sqrt(0.5), 0, np.sqrt(0.5), 0])  # upright becomes along x
    arm.set_world_velocity(np.ones(6))  # nothing happens
    run(env, 3)
    assert arm.get_pose()[0].tolist() == [1, 2, 3]
    assert arm.get_linear_velocity().tolist() == [0, 0, 0]
    arm.set_joint_positions([0, 0])
    assert arm.body('lower').get_pose()[0] == pytest.approx([1.4, 2, 3])
    assert robot_of(env, 0).articulation.get_pose()[0].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match='lower'):
        arm.body('lower').set_pose([0, 0, 0])
    with pytest.raises(ValueError, match='lower'):
        arm.body('lower').set_linear_velocity([0, 0, 0])
    with pytest.raises(KeyError, match="'lowr'; did you mean 'lower'"):
        arm.body('lowr')


def test_base_fixed_floating_or_as_the_model_says(start, models):
    for model, kind, falls in [
        ('arm', 'PassiveRobot', False),
        ('arm', 'FloatingRobot', True),
        ('hopper', 'PassiveRobot', True),
        ('hopper', 'BoltedRobot', False),
    ]:
        env = start(models[model], kind, dt=0.01, position=(0, 0, 5))
        run(env, 20)
        fallen = 5 - robot_of(env).articulation.get_pose()[0][2]
        assert fallen == (pytest.approx(G * 0.01**2 * 20 * 21 / 2, rel=0.1) if falls else 0.0), (model, kind)


def test_scale_of_a_robot(start, write_model):
    machine = write_model(
        'machine',
        '<worldbody><body name="base"><geom size="0.1" mass="1"/><body name="lift" pos="0.1 0 0.2">'
        '<joint name="slide" type="slide" axis="0 0 1" range="-0.1 0.3"/><geom type="box" size="0.1 0.1 0.1" mass="2"/>'
        '<site name="tip" pos="0 0 0.1"/></body></body></worldbody>',
    )
    env = start(machine, scale=(2, 2, 2), position=(0, 0, 1))
    articulation = robot_of(env).articulation
    assert articulation.body('lift').get_pose()[0] == pytest.approx([0.2, 0, 1.4])
    assert articulation.view.joint_ranges.tolist() == [pytest.approx([-0.2, 0.6])]
    assert articulation.body('lift').get_mass() == pytest.approx(2.0)
    model = env.runner.world.model(0)
    body = model.body('robots/robot/lift').id
    assert model.body_inertia[body] == pytest.approx([2 * 0.4**2 / 6] * 3)
    assert model.geom_size[model.body_geomadr[body]] == pytest.approx([0.2, 0.2, 0.2])
    assert robot_of(env).get_robot_scale().tolist() == [2, 2, 2]


# --- objects ---------------------------------------------------------------------------------------------------------


def test_objects_that_move_and_objects_that_do_not(start, make_block):
    objects = [
        make_block('table', position=(0, 0, 0.5), scale=(1, 1, 0.2)),
        make_block('cup', 0.5, position=(0, 0, 0.8)),
    ]
    env = start(None, scene='floor', dt=0.005, objects=objects, env_num=2)
    table, cup = env.runner.get_obj('table', 1), env.runner.get_obj('cup', 1)
    run(env, 200)
    assert table.get_pose()[0].tolist() == [0, 0, 0.5]
    assert cup.get_pose()[0] == pytest.approx([0, 0, 0.7], abs=2e-3)  # 0.1 m above the top of the table
    assert cup.get_mass() == pytest.approx(0.5)
    table.set_pose([5, 0, 0.5])
    run(env, 200)
    assert table.get_pose()[0].tolist() == [5, 0, 0.5]
    assert cup.get_pose()[0] == pytest.approx([0, 0, 0.1], abs=2e-3)
    assert env.runner.get_obj('cup', 0).get_pose()[0] == pytest.approx([0, 0, 0.7], abs=2e-3)
    with pytest.raises(ValueError, match='table'):
        table.set_linear_velocity([1, 0, 0])
    cup.set_pose([0, 0, 3], [0.6, 0, 0.8, 0])
    cup.set_linear_velocity([1, 0, 0])
    cup.set_angular_velocity([0, 0, 2])  # in env axes, however the cup is turned
    run(env, 1)
    assert cup.get_linear_velocity() == pytest.approx([1, 0, -G * 0.005], abs=1e-5)
    assert cup.get_angular_velocity() == pytest.approx([0, 0, 2], abs=1e-5)
    turned = rotation(cup.get_pose()[1]) @ rotation(np.array([0.6, 0, 0.8, 0])).T
    assert turned[1, 0] == pytest.approx(np.sin(2 * 0.005), rel=1e-3)
    with pytest.raises(KeyError, match="'cap'; did you mean 'cup'"):
        env.runner.get_obj('cap')


def test_movable_bodies_of_the_scene(start):
    env = start(None, scene='crates', env_num=2)
    assert set(env.runner.envs[0].task.scene_rigid_bodies) == {'crate', 'drum'}
    crate = env.runner.get_obj('crate', 1)
    crate.set_pose([0, 0, 5])
    run(env, 2)
    assert env.runner.get_obj('crate', 0).get_pose()[0] == pytest.approx([0.5, 0, 0.1], abs=1e-3)
    assert crate.get_pose()[0][2] == pytest.approx(5, abs=1e-3)
