"""The world contract on PhysX: envs that do not meet, scenes that come and go, changes at run time, refusals."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.model.spec import Drives, JointSpec, ObjectSpec, Probe, RobotSpec, SceneSpec

G = 9.81
ALONE = pytest.mark.parametrize('host', ['ovphysx'], indirect=True)  # Isaac Sim has one stage for all
WriteModel = Callable[[str, str], str]


@pytest.fixture
def hopper(models: dict[str, str]) -> RobotSpec:
    drives = Drives(stiffness=20.0, damping=1.0)
    return RobotSpec('hopper', models['hopper'], position=(0.0, 0.0, 0.3), drives=drives)


def wave(world: Any, step: int, env_ids: Any = None) -> None:
    """Move the hoppers, each in its own way."""
    ids = np.arange(world.env_num) if env_ids is None else np.asarray(env_ids)
    targets = 0.5 * np.sin(0.2 * step + ids)[:, None] * [1.0, -1.0]
    world.articulation('hopper', int(ids[0])).set_targets(ids, positions=targets)


def trajectory(world: Any, steps: int, envs: Any = None) -> np.ndarray:
    """Joints and poses of the hoppers after each step, `(steps, envs, 9)`."""
    ids, rows = np.arange(world.env_num) if envs is None else np.asarray(envs), []
    view = world.articulation('hopper', int(ids[0]))
    for step in range(steps):
        wave(world, step, ids)
        assert not world.step(ids)
        rows.append(np.concatenate([view.get_joint_positions(), *view.get_root_poses()], axis=1)[ids])
    return np.array(rows)


@ALONE
def test_an_env_does_not_know_of_the_others(start: Any, hopper: RobotSpec) -> None:
    """To the bit, whatever their number, and on any number of threads."""
    alone = trajectory(start(hopper), 80)[:, 0]
    for env_num, threads in ((5, 1), (9, 2)):
        many = trajectory(start(hopper, env_num=env_num, threads=threads), 80)
        np.testing.assert_array_equal(many[:, 0], alone)
        assert not np.array_equal(many[:, 1], alone)


@ALONE
def test_another_scene_in_one_env_moves_no_bit_of_the_others(
    start: Any, hopper: RobotSpec, models: dict[str, str]
) -> None:
    """Also where the batch of the new scene has to grow, and where the env comes back."""
    expected = trajectory(start(hopper, env_num=4), 60)
    world = start(hopper, env_num=4)
    seen = [trajectory(world, 20)]
    crates = SceneSpec(models['crates'], robots=(hopper,))
    world.load({1: (world.prepare(crates), crates)})
    assert set(world.body_names(1)) == {'crate', 'drum'} and world.body_names(0) == ()

    def rest(first: int, steps: int) -> None:
        view = world.articulation('hopper', 0)
        for step in range(first, first + steps):
            wave(world, step)
            assert not world.step(np.arange(4))
            now = np.concatenate([view.get_joint_positions(), *view.get_root_poses()], axis=1)
            np.testing.assert_array_equal(now[[0, 2, 3]], expected[step][[0, 2, 3]])

    rest(20, 10)
    floor = SceneSpec(models['floor'], robots=(hopper,))
    world.load({1: (world.prepare(floor), floor)})
    rest(30, 10)
    world.unload(np.array([1]))
    world.load({1: (world.prepare(crates), crates)})
    rest(40, 20)
    np.testing.assert_array_equal(seen[0], expected[:20])


def test_a_batch_grows(start: Any, hopper: RobotSpec, models: dict[str, str]) -> None:
    world = start(hopper, env_num=3)
    crates = SceneSpec(models['crates'], robots=(hopper,))
    handle = world.prepare(crates)
    for env_id in (2, 0, 1):
        world.load({env_id: (handle, crates)})
        assert not world.step(np.arange(3))
    assert trajectory(world, 5).shape == (5, 3, 9)


@ALONE
def test_an_object_joins_an_env_that_runs(start: Any, hopper: RobotSpec, models: dict[str, str]) -> None:
    """The robot keeps its state, to the bit, and the other env does not know of it."""
    expected = trajectory(start(hopper, env_num=2), 60)
    world = start(hopper, env_num=2)
    trajectory(world, 20)
    before = world.articulation('hopper', 0).get_joint_velocities()
    stone = ObjectSpec('stone', position=(2.0, 0.0, 10.0), mass=3.0)
    spec = SceneSpec(models['floor'], robots=(hopper,), objects=(stone,))
    world.change_scene(1, spec)
    view = world.articulation('hopper', 0)
    np.testing.assert_array_equal(view.get_joint_velocities(), before)
    for step in range(20, 60):
        wave(world, step)
        assert not world.step(np.arange(2))
        np.testing.assert_array_equal(view.get_joint_positions()[0], expected[step, 0, :2])
    assert view.get_joint_positions()[1] == pytest.approx(expected[59, 1, :2], abs=0.02)
    assert 10 - world.body('stone', 1).get_poses()[0][1, 2] == pytest.approx(
        G / 2 * (40 * world.step_dt) ** 2, rel=0.03
    )
    joint = JointSpec('fixed', ('/objects/stone', None), break_force=10.0)
    with pytest.raises(NotImplementedError, match="only backend 'mujoco' has joints that break"):
        world.change_scene(1, dataclasses.replace(spec, joints=(joint,)))


def test_envs_that_are_not_stepped_stay(start: Any, hopper: RobotSpec) -> None:
    world = start(hopper, env_num=3)
    trajectory(world, 10)
    view = world.articulation('hopper', 0)
    before = view.get_joint_positions()[1].copy()
    others = trajectory(world, 10, [0, 2])
    assert view.get_joint_positions()[1] == pytest.approx(before, abs=0)
    assert np.ptp(others, axis=0).max() > 1e-3
    world.step(np.array([1]))
    assert view.get_joint_positions()[1] == pytest.approx(before, abs=0.2)


def test_start_again(start: Any, hopper: RobotSpec, models: dict[str, str]) -> None:
    """A reset env does what it did; what PhysX keeps of contacts changes the last digits."""
    world = start(hopper, env_num=2)
    first = trajectory(world, 30)
    floor = SceneSpec(models['floor'], robots=(hopper,))
    world.load({i: (world.prepare(floor), floor) for i in range(2)})
    np.testing.assert_allclose(trajectory(world, 30), first, atol=1e-3)


def test_a_saved_state(start: Any, hopper: RobotSpec) -> None:
    world = start(hopper, env_num=2)
    trajectory(world, 10)
    state = world.get_state(1)
    expected = trajectory(world, 10)
    assert world.check_compatible(1, state) is None
    world.set_state(1, state)
    np.testing.assert_allclose(trajectory(world, 10)[:, 1], expected[:, 1], atol=1e-3)


@ALONE
def test_worlds_side_by_side(start: Any, hopper: RobotSpec) -> None:
    expected = trajectory(start(hopper), 10)
    one, other = start(hopper), start(hopper, env_num=2)
    trajectory(other, 3)
    np.testing.assert_array_equal(trajectory(one, 10), expected)
    one.close()
    one.close()
    trajectory(other, 3)


def test_gains_masses_and_armature_of_one_env(start: Any, run: Any, write_model: WriteModel) -> None:
    rail = (
        '<worldbody><body name="cart"><joint name="rail" type="slide" axis="1 0 0"/>'
        '<geom size="0.1" mass="2"/></body></worldbody>'
    )
    cart = RobotSpec('cart', write_model('cart', rail), fixed_base=True, position=(0, 0, 1), drives=FREE)
    world = start(cart, env_num=4)
    view, ids = world.articulation('cart', 0), np.arange(4)
    view.body('cart').set_masses(np.array([1]), [5.0])
    view.set_joint_dynamics(np.array([2]), armature=[[3.0]])
    view.set_gains(np.array([3]), stiffness=[[4.0]], damping=[[40.0]])
    view.set_targets(ids, efforts=np.full((4, 1), 10.0))
    run(world, 0.1)
    speeds = view.get_joint_velocities()[:, 0]
    assert speeds[:3] == pytest.approx([0.5, 0.2, 0.2], rel=1e-3)
    assert speeds[3] == pytest.approx(10 / 40 * (1 - np.exp(-40 / 2 * 0.1)), rel=0.05)
    assert view.body('cart').get_masses() == pytest.approx([2, 5, 2, 2])


FREE = Drives(stiffness=0.0, damping=0.0)


def test_frictions_of_one_env(start: Any, run: Any, write_model: WriteModel) -> None:
    box = '<worldbody><body name="box"><freejoint/><geom type="box" size="0.2 0.2 0.1" mass="4"/></body></worldbody>'
    floor = write_model('ice', '<worldbody><geom type="plane" size="9 9 1" friction="0.01 0 0"/></worldbody>')
    robot = RobotSpec('box', write_model('box', box), position=(0.0, 0.0, 0.1))
    world = start(robot, scene=floor, env_num=2)
    view = world.articulation('box', 0)
    view.set_frictions(np.array([0, 1]), [0.2, 0.5])
    run(world, 0.1)
    view.set_root_velocities(np.array([0, 1]), [[3.0, 0, 0]] * 2, [[0.0, 0, 0]] * 2)
    run(world, 0.2)
    assert 3 - view.get_root_velocities()[0][:, 0] == pytest.approx([0.2 * G * 0.2, 0.5 * G * 0.2], rel=0.03)


def test_a_fixed_base_is_moved(start: Any, run: Any, models: dict[str, str]) -> None:
    world = start(
        RobotSpec('arm', models['arm'], fixed_base=True, drives=Drives(stiffness=50.0, damping=5.0)), env_num=2
    )
    view = world.articulation('arm', 0)
    view.set_root_poses(np.array([1]), [[1.0, 2.0, 3.0]], [[np.sqrt(0.5), 0.0, np.sqrt(0.5), 0.0]])
    run(world, 1.0)
    angle, _ = view.get_joint_positions()[1]
    assert view.get_root_poses()[0][1].tolist() == [1, 2, 3]
    assert angle > 0.02 > abs(view.get_joint_positions()[0, 0]), 'the arm lies, and gravity bends it'


def test_a_kinematic_object_carries_and_is_moved(start: Any, run: Any) -> None:
    table = ObjectSpec('table', position=(0.0, 0.0, 0.5), scale=(1.0, 1.0, 0.2), dynamic=False)
    cup = ObjectSpec('cup', position=(0.0, 0.0, 0.8), scale=(0.2, 0.2, 0.2), mass=0.5)
    world = start(objects=(table, cup), env_num=2)
    run(world, 1.0)
    assert world.body('cup', 0).get_poses()[0][:, 2] == pytest.approx([0.7, 0.7], abs=1e-3)
    world.body('table', 0).set_poses(np.array([1]), [[5.0, 0.0, 0.5]])
    run(world, 1.0)
    assert world.body('cup', 0).get_poses()[0][:, 2] == pytest.approx([0.7, 0.1], abs=1e-3)


def test_joints_of_the_scene(start: Any, run: Any, write_model: WriteModel) -> None:
    """A door on the world, with a handle on a slide of the same body."""
    scene = write_model(
        'door',
        '<worldbody><geom type="plane" size="9 9 1"/><body name="door" pos="1 0 1">'
        '<joint name="hinge" axis="0 0 1" range="-90 90" damping="0.5"/><joint name="lift" type="slide" axis="0 0 1"/>'
        '<geom type="box" size="0.4 0.02 0.9" pos="0.4 0 0" mass="8"/></body></worldbody>',
    )
    world = start(scene=scene, env_num=2)
    view = world.articulation('scene/door', 0)
    assert view.dof_names == ('hinge', 'lift')
    view.set_joint_velocities(np.array([1]), [[1.0, 0.0]])
    run(world, 0.1)
    assert view.get_joint_positions()[:, 0] == pytest.approx([0.0, 0.1], abs=5e-3)
    assert view.get_joint_positions()[:, 1] == pytest.approx([-G / 2 * 0.01] * 2, rel=0.02)


def test_self_collisions_are_switched(start: Any, run: Any, write_model: WriteModel) -> None:
    """Two fists that are pushed at each other meet, or pass."""
    fists = '<worldbody><body name="body"><geom size="0.02" mass="1"/>' + ''.join(
        f'<body name="fist{side}" pos="0 {side * 0.3} 0"><joint name="slide{side}" type="slide" axis="0 1 0"/>'
        '<geom size="0.1" mass="0.5"/></body>'
        for side in (-1, 1)
    )
    robot = RobotSpec(
        'boxer', write_model('boxer', fists + '</body></worldbody>'), fixed_base=True, position=(0, 0, 1), drives=FREE
    )
    world = start(robot, env_num=2)
    world.articulation('boxer', 0).set_self_collisions(np.array([1]), False)
    for env_id in range(2):
        view = world.articulation('boxer', env_id)
        view.set_joint_velocities(np.array([env_id]), [[1.0, -1.0]])
    run(world, 0.5)
    gap = 0.6 - np.diff(world.articulation('boxer', 0).get_joint_positions(), axis=1)[0] * -1
    passed = 0.6 + np.diff(world.articulation('boxer', 1).get_joint_positions()[1])
    assert gap[0] > 0.19 and passed[0] < -0.3


def test_excludes_of_some_links(start: Any, run: Any, write_model: WriteModel) -> None:
    """Of three beads on parallel rails, two pass through each other; the third stops the first."""
    beads = ''.join(
        f'<body name="bead{k}" pos="0 {y} 0"><joint name="slide{k}" type="slide" axis="0 1 0"/>'
        '<geom size="0.1" mass="0.5"/></body>'
        for k, y in enumerate((0.0, 0.3, 0.9))
    )
    robot = write_model(
        'beads',
        f'<worldbody><body name="body"><geom size="0.02" pos="0 0 1" mass="1"/>{beads}</body></worldbody>'
        '<contact><exclude body1="bead0" body2="bead1"/></contact>',
    )
    world = start(RobotSpec('beads', robot, fixed_base=True, position=(0, 0, 1), drives=FREE))
    view = world.articulation('beads', 0)
    view.set_joint_velocities(np.array([0]), [[1.0, 0.0, 0.0]])
    run(world, 1.5)
    first, passed, pushed = view.get_joint_positions()[0]
    assert first > 0.6 and passed == pytest.approx(0.0, abs=1e-4) and pushed > 0.1


def test_geoms_with_bits_of_their_own(start: Any, run: Any, write_model: WriteModel) -> None:
    """A ghost falls through the crate that the ground carries."""
    scene = write_model(
        'bits',
        '<worldbody><geom type="plane" size="9 9 1" contype="1" conaffinity="3"/>'
        '<body name="crate" pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>'
        '<body name="ghost" pos="0 0 0.5"><freejoint/>'
        '<geom type="box" size="0.1 0.1 0.1" contype="2" conaffinity="0"/></body></worldbody>',
    )
    world = start(scene=scene)
    run(world, 1.5)
    for name in ('crate', 'ghost'):
        assert world.body(name, 0).get_poses()[0][0, 2] == pytest.approx(0.1, abs=1e-3)


def test_meshes_and_height_fields(start: Any, run: Any) -> None:
    """What falls on a terrain of all shapes lies on it where rays meet it."""
    stones = tuple(
        ObjectSpec(f'stone{k}', position=(x, y, 2.5), scale=(0.2, 0.2, 0.2), mass=1.0)
        for k, (x, y) in enumerate(((-3.0, 2.0), (2.0, -2.5), (0.5, 0.5)))
    )
    world = start(objects=stones, scene='scenes/terrain.xml')
    run(world, 2.0)
    for stone in stones:
        position = world.body(stone.name, 0).get_poses()[0][0]
        assert -0.5 < position[2] < 2.0 and abs(world.body(stone.name, 0).get_velocities()[0][0, 2]) < 0.5


def test_what_physx_cannot_do_is_refused(make_world: Any, write_model: WriteModel, hopper: RobotSpec) -> None:
    world = make_world()
    hip = '<joint name="hip" type="ball" limited="true" range="0 1"/>'
    ball = f'<worldbody><body name="b">{hip}<geom size="0.1" mass="1"/></body></worldbody>'
    tendon = (
        '<worldbody><body name="b"><joint name="j"/><geom size="0.1" mass="1"/></body></worldbody>'
        '<tendon><fixed><joint joint="j" coef="1"/></fixed></tendon>'
    )
    for name, body, words in (('ball', ball, "limits of ball joints.*'scene/hip'"), ('tendon', tendon, 'tendons')):
        with pytest.raises(NotImplementedError, match=words):
            world.prepare(SceneSpec(write_model(name, body)))
    probe = Probe('wrench', 'torso', sensor='feeler')
    with pytest.raises(NotImplementedError, match="'hopper', sensor 'feeler'.*what holds a root"):
        world.prepare(SceneSpec(None, robots=(dataclasses.replace(hopper, probes=(probe,)),)))


def test_an_env_that_diverges_is_cut(start: Any, hopper: RobotSpec) -> None:
    world = start(hopper, env_num=3)
    world.articulation('hopper', 0).set_joint_positions(np.array([1]), [[1e12, 0.0]])
    failed = world.step(np.arange(3))
    assert list(failed) == [1] and 'diverged' in failed[1]
    assert not world.step(np.array([0, 2]))


@ALONE
def test_masses_of_one_env_move_no_other_by_a_bit(start: Any, write_model: Any) -> None:
    """Nor do frictions: what has not changed is not written again."""
    inertia = '<inertial pos="0.03 0.02 0.01" mass="2" fullinertia="0.05 0.04 0.03 0.01 0.008 0.005"/>'
    box = f'<body name="box"><freejoint/>{inertia}<geom type="box" size="0.1 0.08 0.06"/></body>'
    robot = RobotSpec('box', write_model('box', f'<worldbody>{box}</worldbody>'), position=(0.0, 0.0, 0.5))
    ends = []
    for changed in (False, True):
        world = start(robot, env_num=3)
        view = world.articulation('box', 0)
        view.set_root_velocities(np.arange(3), [[1.0, 0.2, 0.0]] * 3, [[1.0, 2.0, 3.0]] * 3)
        for step in range(120):
            if changed and step == 10:
                view.body('box').set_masses(np.array([1]), [3.0])
                view.set_frictions(np.array([2]), [5.0])
            world.step(np.arange(3))
        ends.append(np.concatenate(view.get_root_poses(), axis=1))
    assert np.array_equal(ends[0][0], ends[1][0])
    assert not np.array_equal(ends[0][1], ends[1][1]) and not np.array_equal(ends[0][2], ends[1][2])
