"""PhysX against formulas: falls, swings, drives, friction, bounces, momentum and contact forces."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.spec import Drives, ObjectSpec, Probe, RobotSpec, SceneSpec

G = 9.81
WriteModel = Callable[[str, str], str]


def test_free_fall(start: Any, run: Any) -> None:
    """Gravity acts in each of PhysX's iterations: a fall is closer to the parabola than a time step would allow."""
    stone = ObjectSpec('stone', position=(0.0, 0.0, 10.0), orientation=(0.8, 0.6, 0.0, 0.0), mass=3.0)
    world = start(objects=(stone,), scene=None)
    run(world, 1.0)
    view = world.body('stone', 0)
    assert 10 - view.get_poses()[0][0, 2] == pytest.approx(G / 2, rel=1e-3)
    assert view.get_velocities()[0][0] == pytest.approx([0, 0, -G], rel=1e-4)
    assert view.get_poses()[1][0] == pytest.approx([0.8, 0.6, 0, 0], abs=1e-6)


def test_spin_about_a_centre_of_mass_off_the_origin(start: Any, run: Any, write_model: WriteModel) -> None:
    """Linear velocities are those of the body's origin, as MuJoCo has them."""
    body = '<body name="club"><freejoint/><inertial pos="0.5 0 0" mass="2" diaginertia="1 1 1"/></body>'
    world = start(scene=write_model('club', f'<worldbody>{body}</worldbody>'))
    view = world.body('club', 0)
    view.set_velocities(np.array([0]), linear=[[0.0, -1.0, 0.0]], angular=[[0.0, 0.0, 2.0]])
    run(world, 0.5)  # the centre of mass is at rest, but for its fall
    centre = 0.5 * np.array([1 - np.cos(1.0), -np.sin(1.0), 0.0])
    assert view.get_poses()[0][0, :2] == pytest.approx(centre[:2], abs=1e-3)
    assert view.get_velocities()[1][0] == pytest.approx([0, 0, 2], abs=1e-4)
    assert view.get_velocities()[0][0, :2] == pytest.approx([np.sin(1.0), -np.cos(1.0)], abs=2e-3)


def test_period_of_a_pendulum(start: Any, write_model: WriteModel) -> None:
    length, mass, inertia, amplitude, dt = 0.4, 1.5, 0.02, 0.2, 1 / 400
    bob = (
        '<worldbody><body name="bob"><joint name="pivot" axis="0 1 0" limited="false"/>'
        f'<inertial pos="0 0 -{length}" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/></body></worldbody>'
    )
    robot = RobotSpec(
        'bob', write_model('bob', bob), fixed_base=True, joint_positions={'pivot': amplitude}, drives=FREE
    )
    world = start(robot, dt=dt)
    view, crossings, last = world.articulation('bob', 0), [], amplitude
    for step in range(round(4 / dt)):
        world.step(np.array([0]))
        now = float(view.get_joint_positions()[0, 0])
        if last > 0 >= now:
            crossings.append((step + last / (last - now)) * dt)
        last = now
    small = 2 * np.pi * np.sqrt((inertia + mass * length**2) / (mass * G * length))
    assert np.mean(np.diff(crossings)) == pytest.approx(small * (1 + amplitude**2 / 16), rel=2e-3)


FREE = Drives(stiffness=0.0, damping=0.0)
LEVER = (
    '<worldbody><body name="lever"><joint name="pivot" axis="0 1 0"/>'
    '<inertial pos="0.5 0 0" mass="2" diaginertia="0.01 0.01 0.01"/></body></worldbody>'
)


def lever(write_model: WriteModel, drives: Drives) -> RobotSpec:
    return RobotSpec('lever', write_model('lever', LEVER), fixed_base=True, drives=drives)


def test_droop_of_a_drive(start: Any, run: Any, write_model: WriteModel) -> None:
    """A drive holds where stiffness times the deviation is the weight's moment."""
    world = start(lever(write_model, Drives(stiffness=200.0, damping=20.0)))
    run(world, 2.0)
    view = world.articulation('lever', 0)
    angle = float(view.get_joint_positions()[0, 0])
    assert 200.0 * angle == pytest.approx(2 * G * 0.5 * np.cos(angle), rel=1e-3)
    assert view.get_joint_efforts()[0, 0] == pytest.approx(-2 * G * 0.5 * np.cos(angle), rel=1e-3)


def test_effort_limit_of_a_drive(start: Any, run: Any, write_model: WriteModel) -> None:
    """A drive that may not carry the weight lets it fall, with the rest of the moment."""
    limited = Drives(stiffness=1e5, damping=100.0, effort_limit=4.0)
    world = start(lever(write_model, limited))
    run(world, 0.02)
    view = world.articulation('lever', 0)
    inertia = 0.01 + 2 * 0.25
    assert view.get_joint_velocities()[0, 0] == pytest.approx((2 * G * 0.5 - 4.0) / inertia * 0.02, rel=0.3)
    assert view.get_joint_efforts()[0, 0] == pytest.approx(-4.0)


@pytest.mark.parametrize('kind', ['efforts', 'velocities'])
def test_targets_of_effort_and_velocity(start: Any, run: Any, write_model: WriteModel, kind: str) -> None:
    rail = (
        '<worldbody><body name="cart"><joint name="rail" type="slide" axis="1 0 0"/>'
        '<geom size="0.1" mass="2"/></body></worldbody>'
    )
    drives = Drives(stiffness=0.0, damping=0.0 if kind == 'efforts' else 50.0)
    world = start(RobotSpec('cart', write_model('cart', rail), fixed_base=True, position=(0, 0, 1), drives=drives))
    view = world.articulation('cart', 0)
    view.set_targets(np.array([0]), **{kind: [[3.0]]})
    run(world, 0.5)
    expected = 3.0 / 2 * 0.5 if kind == 'efforts' else 3.0 * (1 - np.exp(-50 / 2 * 0.5))
    assert view.get_joint_velocities()[0, 0] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(('slope', 'friction'), [(0.2, 0.3), (0.4, 0.3), (0.3, 0.0)])
def test_a_block_on_a_slope_sticks_or_slips(
    start: Any, run: Any, write_model: WriteModel, slope: float, friction: float
) -> None:
    surface = f'friction="{friction} 0 0"'
    scene = write_model(
        'slope',
        f'<option gravity="{G * np.sin(slope)} 0 {-G * np.cos(slope)}"/><worldbody>'
        f'<geom type="plane" size="9 9 1" {surface}/><body name="block" pos="0 0 0.1"><freejoint/>'
        f'<geom type="box" size="0.2 0.2 0.1" {surface}/></body></worldbody>',
    )
    world = start(scene=scene)
    view = world.body('block', 0)
    run(world, 0.2)
    before = float(view.get_velocities()[0][0, 0])
    run(world, 0.5)
    acceleration = (float(view.get_velocities()[0][0, 0]) - before) / 0.5
    expected = max(0.0, G * (np.sin(slope) - friction * np.cos(slope)))
    assert acceleration == pytest.approx(expected, rel=0.01, abs=0.005)
    assert view.get_poses()[0][0, 2] == pytest.approx(0.1, abs=1e-3)


def test_restitution(start: Any, write_model: WriteModel) -> None:
    """A ball rises to the square of its restitution, of the height that it fell from."""
    restitution, dt = 0.7, 1 / 480
    bounce = f'solref="-1000 {-(1 + restitution) / dt}" solimp="0.9999 0.9999 0.001" solmix="1000"'
    scene = write_model(
        'ball',
        f'<option timestep="{dt}"/><worldbody><geom type="plane" size="9 9 1"/><body name="ball" pos="0 0 1.1">'
        f'<freejoint/><geom size="0.1" {bounce}/></body></worldbody>',
    )
    world = start(scene=scene, dt=dt)
    view, heights = world.body('ball', 0), []
    for _ in range(round(1.0 / dt)):
        world.step(np.array([0]))
        heights.append(float(view.get_poses()[0][0, 2]) - 0.1)
    lowest = int(np.argmin(heights[: round(0.6 / dt)]))
    assert max(heights[lowest:]) == pytest.approx(restitution**2, rel=0.05)


def test_inertias_about_tilted_axes(start: Any, write_model: WriteModel) -> None:
    """Joints and a free body feel the inertia that the model has, whose principal axes are not those of the bodies."""
    inertia, at = 'mass="2" fullinertia="0.5 0.4 0.3 0.1 0.08 0.05"', 'pos="0.1 0.2 0.3"'
    arm = (
        f'<worldbody><body name="base"><inertial {at} {inertia}/><body name="arm" pos="0 0 0.5">'
        f'<joint name="lift" axis="0 1 0"/><inertial {at} {inertia}/><body name="hand" pos="0.4 0 0">'
        f'<joint name="turn" axis="1 0 0"/><inertial {at} {inertia}/></body></body></body></worldbody>'
    )
    club = f'<worldbody><body name="club"><freejoint/><inertial {at} {inertia}/></body></worldbody>'
    dt, effort = 1 / 240, np.array([3.0, -2.0])
    robot = RobotSpec('arm', write_model('arm', arm), fixed_base=True, drives=FREE)
    world = start(robot, scene=write_model('club', club), env_num=2, dt=dt)
    view, body = world.articulation('arm', 0), world.body('club', 0)
    view.set_targets(np.array([1]), efforts=[effort])
    body.set_velocities(np.array([0, 1]), angular=[[0.0, 0.0, 2.0]] * 2)
    model, data = world.model(0), world.data(0)
    dofs = [model.joint(f'robots/arm/{name}').dofadr[0] for name in ('lift', 'turn')]
    world.step(np.array([0, 1]))
    masses = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, masses)
    masses = masses[np.ix_(dofs, dofs)]
    change = view.get_joint_velocities()[1] - view.get_joint_velocities()[0]
    assert change == pytest.approx(np.linalg.solve(masses, effort) * dt, rel=1e-3)
    moments = np.array([[0.5, 0.1, 0.08], [0.1, 0.4, 0.05], [0.08, 0.05, 0.3]])
    spin = np.array([0.0, 0.0, 2.0])  # Euler's equations, of a body without torques
    turned = spin - np.linalg.solve(moments, np.cross(spin, moments @ spin)) * dt
    assert body.get_velocities()[1][0] == pytest.approx(turned, rel=0.01, abs=1e-4)


def test_momentum_of_a_collision(start: Any, run: Any) -> None:
    cubes = tuple(
        ObjectSpec(name, position=(x, 0.0, 5.0), scale=(0.2, 0.2, 0.2), mass=mass)
        for name, x, mass in (('heavy', 0.0, 3.0), ('light', 0.5, 1.0))
    )
    world = start(objects=cubes, scene=None)
    world.body('heavy', 0).set_velocities(np.array([0]), linear=[[2.0, 0.0, 0.0]])
    run(world, 0.4)
    speeds = [float(world.body(name, 0).get_velocities()[0][0, 0]) for name in ('heavy', 'light')]
    assert speeds[1] > 1.0
    assert 3.0 * speeds[0] + speeds[1] == pytest.approx(6.0, rel=1e-4)


BOX = '<worldbody><body name="box"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="4"/></body></worldbody>'


def test_contact_force_is_the_weight(start: Any, run: Any, write_model: WriteModel) -> None:
    """In all envs, as PhysX counts contacts of one scene alone in its tensors."""
    box = RobotSpec('box', write_model('box', BOX), position=(0.0, 0.0, 0.101), contact_links=('box',))
    world = start(box, env_num=3)
    run(world, 0.5)
    assert world.articulation('box', 0).get_contact_forces() == pytest.approx(np.array([[[0, 0, 4 * G]]] * 3), abs=0.02)


def test_contacts_with_one_thing_and_their_points(start: Any, run: Any, write_model: WriteModel) -> None:
    """A box on the ground with a weight on it: forces from below alone, and the corners that it stands on."""
    below, weight = Probe('contact', 'box', sensor='a'), Probe('contact', 'box', sensor='b', against='weight')
    points = Probe('contacts', 'box', sensor='c')
    box = write_model('box', BOX)
    robot = RobotSpec('box', box, position=(0.0, 0.0, 0.1), probes=(below, weight, points))
    load = ObjectSpec('weight', position=(0.0, 0.0, 0.25), scale=(0.1, 0.1, 0.1), mass=1.5)
    world = start(robot, objects=(load,), env_num=2)
    run(world, 1.0)
    view = world.articulation('box', 0)
    assert view.measure(below) == pytest.approx(np.array([[1, 0, 0, 4 * G]] * 2), abs=0.05)
    assert view.measure(weight) == pytest.approx(np.array([[1, 0, 0, -1.5 * G]] * 2), abs=0.05)
    found = view.measure(points).reshape(2, -1, 6)
    held = found[:, :4]
    assert np.abs(held[..., :2]) == pytest.approx(np.full((2, 4, 2), 0.1), abs=1e-3)
    assert held[..., 2] == pytest.approx(np.zeros((2, 4)), abs=1e-3)
    assert held[..., 3:] == pytest.approx(np.broadcast_to([0, 0, -1.0], (2, 4, 3)), abs=1e-3)
    assert found[:, 4:8, 5] == pytest.approx(np.ones((2, 4)), abs=1e-3) and not found[:, 8:].any()


def test_accelerometer(start: Any, run: Any, write_model: WriteModel) -> None:
    """It measures gravity at rest, in its frame, and nothing in free fall."""
    probe = Probe('acceleration', 'box', sensor='imu', orientation=(np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0))
    box = RobotSpec('box', write_model('box', BOX), position=(0.0, 0.0, 3.0), probes=(probe,))
    world = start(box)
    run(world, 0.1)
    view = world.articulation('box', 0)
    assert view.measure(probe)[0] == pytest.approx([0, 0, 0], abs=1e-3)
    run(world, 2.0)
    assert view.measure(probe)[0] == pytest.approx([0, G, 0], abs=0.05)


def test_forces_in_a_joint(start: Any, run: Any, write_model: WriteModel) -> None:
    """A lever at rest takes its weight from its pivot, and the moment from its drive; in the frame of the sensor."""
    frame = (np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)  # its y axis is upwards, its z axis along -y
    probes = Probe('wrench', 'pivot', sensor='force'), Probe('wrench', 'lever', sensor='tip', position=(0.5, 0.0, 0.0))
    turned = Probe('wrench', 'pivot', sensor='turned', orientation=frame)
    robot = lever(write_model, Drives(stiffness=1e5, damping=1e3))
    world = start(dataclasses.replace(robot, probes=(*probes, turned)))
    run(world, 1.0)
    view, weight = world.articulation('lever', 0), 2 * G
    assert view.measure(probes[0])[0] == pytest.approx([0, 0, weight, 0, -0.5 * weight, 0], abs=0.02)
    assert view.measure(probes[1])[0] == pytest.approx([0, 0, weight, 0, 0, 0], abs=0.02)
    assert view.measure(turned)[0] == pytest.approx([0, weight, 0, 0, 0, 0.5 * weight], abs=0.02)


def test_forces_where_a_part_is_fixed(start: Any, run: Any, write_model: WriteModel) -> None:
    """A tool on a wrist is fixed to its lever: the sensor between them measures the weight of tool and finger."""
    tool = (
        '<body name="wrist" pos="1 0 0"><inertial pos="0.1 0 0" mass="0.5" diaginertia="0.01 0.01 0.01"/>'
        '<geom size="0.1"/><body name="tool" pos="0.1 0 0"><inertial pos="0.2 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>'
        '<body name="finger" pos="0.3 0 0"><joint name="finger" axis="0 0 1"/>'
        '<inertial pos="0 0 0" mass="0.2" diaginertia="0.01 0.01 0.01"/><geom size="0.3"/></body></body></body>'
    )
    model = write_model('lever', LEVER.replace('</body>', f'<geom pos="0.9 0 0" size="0.1"/>{tool}</body>'))
    probes = tuple(Probe('wrench', link, sensor=link) for link in ('wrist', 'tool'))
    drives = Drives(stiffness=1e5, damping=1e3)
    robot = RobotSpec('lever', model, fixed_base=True, position=(0.0, 0.0, 2.0), drives=drives, probes=probes)
    world = start(robot, env_num=2)
    run(world, 1.0)
    view = world.articulation('lever', 0)
    wrist, weight = view.measure(probes[0]), 1.7 * G
    moment = G * (0.5 * 0.1 + 1 * 0.3 + 0.2 * 0.4)
    assert wrist == pytest.approx(np.array([[0, 0, weight, 0, -moment, 0]] * 2), abs=0.02)
    assert view.measure(probes[1])[0] == pytest.approx([0, 0, 1.2 * G, 0, -G * (0.2 + 0.2 * 0.3), 0], abs=0.02)
    assert view.get_joint_positions() == pytest.approx(np.zeros((2, 2)), abs=2e-3), 'the parts do not push each other'


def test_response_of_an_arm_is_that_of_mujoco_at_finer_steps(start: Any, models: dict[str, str]) -> None:
    """Two engines that share no dynamics agree on two links, their drives and gravity."""
    from internutopia.engines.mujoco.world import MujocoWorld

    arm = RobotSpec('arm', models['arm'], fixed_base=True, drives=Drives(stiffness=60.0, damping=6.0))
    arm = dataclasses.replace(arm, joint_positions={'shoulder': 0.5, 'elbow': 0.4})
    physx, mujoco = start(arm, dt=1 / 240), MujocoWorld(1, np.zeros((1, 3)), 1 / 4800, 20, 1)
    scene = SceneSpec(models['floor'], robots=(arm,))
    mujoco.load({0: (mujoco.prepare(scene), scene)})
    views = [world.articulation('arm', 0) for world in (physx, mujoco)]
    for view in views:
        view.set_targets(np.array([0]), positions=[[0.9, -0.5]])
    for _ in range(48):
        for world in (physx, mujoco):
            world.step(np.array([0]))
        one, other = (view.get_joint_positions()[0] for view in views)
        assert one == pytest.approx(other, abs=2e-3)
    mujoco.close()


BALLS = (
    '<worldbody><body name="mast" pos="0 0 2" euler="0 20 40"><joint name="shoulder" type="ball" damping="0.05"/>'
    '<geom type="box" size="0.25 0.04 0.02" pos="0.25 0 0" mass="1"/><body name="fore" pos="0.5 0 0" euler="30 0 70">'
    '<joint name="elbow" type="ball" pos="0 0.02 0" stiffness="3" damping="0.02" armature="0.001"/>'
    '<geom type="box" size="0.2 0.03 0.05" pos="0.2 0.05 0" mass="0.6"/><body name="hand" pos="0.4 0 0">'
    '<joint name="wrist" axis="0 1 1" damping="0.01"/><geom type="box" size="0.1 0.05 0.01" pos="0.1 0 0" mass="0.2"/>'
    '</body></body></body>{loose}</worldbody>'
)
LOOSE = (
    '<body name="disc" pos="5 0 9"><freejoint/><geom type="box" size="0.3 0.2 0.1" mass="2"/><body name="tail" '
    'pos="0.3 0 0"><joint name="tail" type="ball"/><geom type="capsule" fromto="0 0 0 0.5 0.2 0" size="0.03" mass="1"/>'
    '</body></body>'
)


def test_ball_joints_are_those_of_mujoco_at_finer_steps(start: Any, write_model: WriteModel) -> None:
    """Anchors and references of all kinds, springs, damping, and a state that is put back."""
    from internutopia.engines.mujoco.world import MujocoWorld

    scene = SceneSpec(write_model('balls', BALLS.replace('{loose}', LOOSE)))
    physx, mujoco = start(scene=scene.asset, dt=1 / 480, env_num=2), MujocoWorld(2, np.zeros((2, 3)), 1 / 4800, 10, 1)
    mujoco.load({env_id: (mujoco.prepare(scene), scene) for env_id in range(2)})
    worlds, names = (physx, mujoco), ('mast', 'fore', 'hand', 'disc', 'tail')
    for world in worlds:
        world.body('disc', 0).set_velocities(np.array([0]), linear=[[0.0, 0.0, 4.0]], angular=[[3.0, 2.0, 1.0]])
    for step in range(240):
        if step == 120:
            for world in worlds:
                world.set_state(1, world.get_state(0))
        for world in worlds:
            assert not world.step(np.arange(2))
        for name in names if step % 24 == 23 else ():
            one, other = ([values[:1] for values in world.body(name, 0).get_poses()] for world in worlds)
            assert one[0] == pytest.approx(other[0], abs=0.015), (name, step)
            assert np.abs((one[1] * other[1]).sum(axis=-1)) == pytest.approx(1.0, abs=1e-3), (name, step)
    for name in names:
        places = physx.body(name, 0).get_poses()[0]
        assert places[1] == pytest.approx(places[0], abs=1e-3)
    mujoco.close()


def test_rays_are_cast_at_the_poses_of_physx(start: Any, run: Any, write_model: WriteModel) -> None:
    box = RobotSpec('box', write_model('box', BOX), position=(0.0, 0.0, 1.0))
    crate = ObjectSpec('crate', position=(1.0, 0.0, 3.0), scale=(0.5, 0.5, 0.5), mass=1.0)
    world = start(box, objects=(crate,))
    run(world, 2.0)
    view = world.articulation('box', 0)
    rays = np.array([[[1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]])
    distances = view.cast_rays(np.array([0]), np.array([[[0.0, 0.0, 0.3]]]), rays, groups=(0, 1, 2), link='box')
    assert distances[0] == pytest.approx([0.75, 0.3], abs=2e-3)


def test_cylinders_lie_and_stand_on_a_wide_thin_floor(start: Any, run: Any, write_model: WriteModel) -> None:
    """PhysX finds no contacts at some places, unless it looks for them from afar."""
    rng, bodies, heights = np.random.default_rng(0), '', list[float]()
    for k in range(24):
        radius, half = rng.uniform(0.05, 0.3), rng.uniform(0.05, 0.3)
        x, y, yaw = *(rng.uniform(-0.9, 0.9, 2) * [3.0, 4.0]), rng.uniform(0, 360)
        heights.append(radius if k % 2 else half)
        turn = f'euler="90 {yaw} 0"' if k % 2 else ''
        bodies += (
            f'<body name="can{k}" pos="{x} {y} {heights[-1] + 1e-4}" {turn}><freejoint/>'
            f'<geom type="cylinder" size="{radius} {half}" mass="1" contype="2" conaffinity="1"/></body>'
        )
    floor = '<geom type="box" size="3 4 0.025" pos="0 0 -0.025" contype="1" conaffinity="2"/>'
    world = start(scene=write_model('cans', f'<worldbody>{floor}{bodies}</worldbody>'))
    run(world, 0.3)
    found = [float(world.body(f'can{k}', 0).get_poses()[0][0, 2]) for k in range(24)]
    assert found == pytest.approx(heights, abs=2e-3)


def test_a_cylinder_rolls_down_a_slope(start: Any, run: Any, write_model: WriteModel) -> None:
    slope = 0.1
    scene = write_model(
        'roll',
        f'<option gravity="{G * np.sin(slope)} 0 {-G * np.cos(slope)}"/><worldbody>'
        '<geom type="plane" size="9 9 1"/><body name="can" pos="0 0 0.1" euler="90 0 0"><freejoint/>'
        '<geom type="cylinder" size="0.1 0.1" mass="2"/></body></worldbody>',
    )
    world = start(scene=scene)
    run(world, 1.0)
    (position, _), (velocity, spin) = (
        getattr(world.body('can', 0), f'get_{what}')() for what in ('poses', 'velocities')
    )
    assert position[0, 0] == pytest.approx(G * np.sin(slope) / 1.5 / 2, rel=0.06)
    assert velocity[0, 0] == pytest.approx(0.1 * spin[0, 1], rel=0.02), 'it does not slip'


def test_turns_of_a_wheel_are_counted(start: Any, run: Any, write_model: WriteModel) -> None:
    """Positions go on beyond a turn, and so do targets."""
    wheel = (
        '<worldbody><body name="wheel"><joint name="axle" axis="0 0 1"/><geom size="0.1" mass="2"/></body></worldbody>'
    )
    drives = Drives(stiffness=0.0, damping=5.0)
    world = start(RobotSpec('wheel', write_model('wheel', wheel), fixed_base=True, position=(0, 0, 1), drives=drives))
    view = world.articulation('wheel', 0)
    view.set_targets(np.array([0]), velocities=[[20.0]])
    run(world, 1.0)
    assert view.get_joint_positions()[0, 0] == pytest.approx(20.0, rel=0.01)
    view.set_gains(np.array([0]), stiffness=[[50.0]])
    view.set_targets(np.array([0]), positions=[[50.0]], velocities=[[0.0]])
    run(world, 2.0)
    assert view.get_joint_positions()[0, 0] == pytest.approx(50.0, rel=1e-3)
