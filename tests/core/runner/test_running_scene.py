"""Objects and joints added to and removed from running envs: what stays keeps its state, to the bit; mechanics hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.core.util.joint import create_joint
from internutopia.core.vec_env import Env

BLOCK = '/World/env_{}/objects/block'
G = 9.81


@pytest.fixture
def falling(make_env, make_task, make_robot, make_block):
    """Return a function that makes envs with a hopper and a block that fall freely, and resets them."""

    def make(env_num: int = 1, sim: dict | None = None, mass: float = 2.0) -> Env:
        task = make_task(
            robots=[make_robot('hopper', type='PassiveRobot', position=(0.3, 0.0, 2.0), controllers=[])],
            objects=[make_block('block', mass=mass, position=(0.0, 0.4, 3.0))],
            max_steps=9999,
        )
        env = make_env(tasks=[task] * 4, env_num=env_num, sim={'physics_dt': 1 / 1000, 'substeps': 5, **(sim or {})})
        env.reset()
        return env

    return make


def step(env: Env, steps: int) -> None:
    for _ in range(steps):
        env.step([None] * env.num_envs)


def full_state(env: Env, env_id: int) -> np.ndarray:
    world: Any = env.runner.world
    return world.full_state(env_id)


def test_an_object_comes_and_goes_and_the_env_continues_to_the_bit(falling, make_block):
    env = falling(env_num=2)
    step(env, 5)
    before = [full_state(env, i) for i in range(2)]
    assert np.array_equal(before[0], before[1])
    env.runner.add_object(make_block('late', mass=1.0, position=(0.0, -0.4, 3.0)), env_id=1)
    data = env.runner.world.data(1)
    old = env.runner.world.data(0)
    assert np.array_equal(data.qpos[: len(old.qpos)], old.qpos) and np.array_equal(data.qvel[: len(old.qvel)], old.qvel)
    assert np.array_equal(full_state(env, 0), before[0])
    step(env, 10)
    late = env.runner.get_obj('late', 1)
    drop = 3.0 - late.get_pose()[0][2]
    assert drop == pytest.approx(0.5 * G * 0.05**2, rel=0.03)  # it began at rest
    assert (
        env.runner.get_obj('block', 1).get_pose()[0].tolist() == env.runner.get_obj('block', 0).get_pose()[0].tolist()
    )
    env.runner.remove_object('late', env_id=1)
    assert not late.is_valid()
    assert np.array_equal(full_state(env, 0), full_state(env, 1))
    step(env, 50)
    assert np.array_equal(full_state(env, 0), full_state(env, 1))


def test_what_was_changed_in_an_env_stays_changed(falling, make_block):
    env = falling()
    env.runner.get_obj('block').set_mass(7.0)
    articulation = env.runner.current_tasks['0'].robots['hopper'].articulation
    articulation.set_gains([30.0, 40.0], [1.0, 2.0])
    articulation.set_enabled_self_collisions(False)
    flags = env.runner.world.scene(0).source.robots[0].self_collisions
    env.runner.add_object(make_block('late', mass=1.0, position=(0.0, -0.4, 3.0)))
    assert env.runner.get_obj('block').get_mass() == 7.0 and env.runner.get_obj('late').get_mass() == 1.0
    assert [gains.tolist() for gains in articulation.get_gains()] == [[30.0, 40.0], [1.0, 2.0]]
    assert env.runner.world.scene(0).source.robots[0].self_collisions is flags is False


def test_the_next_episode_is_without_what_was_added(falling, make_block):
    env = falling()
    env.runner.add_object(make_block('late', mass=1.0, position=(0.0, -0.4, 3.0)))
    assert list(env.runner.current_tasks['0'].objects) == ['block', 'late']
    env.reset([0])
    with pytest.raises(KeyError, match='late'):
        env.runner.get_obj('late')
    assert list(env.runner.current_tasks['1'].objects) == ['block']


def test_errors_come_before_anything_changes(falling, make_block, tmp_path):
    env = falling()
    step(env, 1)
    before = full_state(env, 0)
    with pytest.raises(ValueError, match="'block' already"):
        env.runner.add_object(make_block('block'))
    with pytest.raises(KeyError, match="no object 'blok'.*block"):
        env.runner.remove_object('blok')
    with pytest.raises(ValueError, match='nothing there'):
        create_joint('/weld', 'FixedJoint', '/World/env_0/objects/blok')
    with pytest.raises(ValueError, match='no joint'):
        create_joint('/weld', 'FixedJoint', BLOCK.format(0), enabled=False)
    with pytest.raises(ValueError, match='break_force must be above 0'):
        create_joint('/weld', 'FixedJoint', BLOCK.format(0), break_force=-1)
    assert np.array_equal(full_state(env, 0), before)


def test_a_weld_holds_a_falling_block_where_it_is_until_it_is_taken_back(falling):
    env = falling()
    step(env, 10)
    block = env.runner.get_obj('block')
    block.set_linear_velocity([0.0, 0.0, 0.0])
    height = block.get_pose()[0][2]
    create_joint('/weld', 'FixedJoint', BLOCK.format(0))
    step(env, 50)
    assert block.get_pose()[0][2] == pytest.approx(height, abs=5e-4)
    create_joint('/weld', 'FixedJoint', BLOCK.format(0), enabled=False)
    height = block.get_pose()[0][2]
    step(env, 20)
    assert height - block.get_pose()[0][2] == pytest.approx(0.5 * G * 0.1**2, rel=0.03)


@pytest.mark.parametrize('loaded', [True, False])
def test_a_slide_moves_along_its_axis_alone(falling, loaded):
    env = falling()
    if not loaded:
        env.reset([0])
    angle = np.deg2rad(30)  # its axis x points down by 30 degrees
    create_joint(
        '/rail',
        'PrismaticJoint',
        BLOCK.format(0),
        joint_frame_in_parent_frame_quat=[0.0, np.sin(angle / 2), 0.0, np.cos(angle / 2)],
    )
    block = env.runner.get_obj('block')
    start = block.get_pose()[0]
    step(env, 60)
    moved = block.get_pose()[0] - start
    assert block.get_pose()[1].tolist() == pytest.approx([1, 0, 0, 0], abs=2e-3)
    length = 0.5 * G * np.sin(angle) * 0.3**2
    assert moved.tolist() == pytest.approx([length * np.cos(angle), 0.0, -length * np.sin(angle)], abs=0.015 * length)


@pytest.mark.parametrize(('limit', 'holds'), [(1.05, True), (0.95, False)])
def test_a_joint_breaks_above_its_force(falling, limit, holds):
    env = falling(mass=2.0)
    create_joint('/weld', 'FixedJoint', BLOCK.format(0), break_force=limit * 2.0 * G)
    block = env.runner.get_obj('block')
    height = block.get_pose()[0][2]
    step(env, 60)
    drop = height - block.get_pose()[0][2]
    assert (drop < 1e-3) if holds else (drop > 0.2)


@pytest.mark.parametrize(('limit', 'holds'), [(1.05, True), (0.95, False)])
@pytest.mark.parametrize('kind', ['FixedJoint', 'PrismaticJoint'])
def test_a_joint_breaks_above_its_torque(falling, kind, limit, holds):
    """Held at 0.5 m from its middle along the axis, level."""
    env = falling(mass=2.0)
    scale = 0.2
    create_joint(
        '/arm',
        kind,
        BLOCK.format(0),
        joint_frame_in_parent_frame_pos=[0.5 / scale, 0.0, 0.0],
        break_torque=limit * 2.0 * G * 0.5,
    )
    block = env.runner.get_obj('block')
    height = block.get_pose()[0][2]
    step(env, 60)
    drop = height - block.get_pose()[0][2]
    assert (drop < 0.01) if holds else (drop > 0.2)


def test_a_state_brings_a_broken_joint_back(falling):
    env = falling()
    create_joint('/weld', 'FixedJoint', BLOCK.format(0), break_force=30.0)
    step(env, 5)
    state = env.get_state()
    block = env.runner.get_obj('block')
    height = block.get_pose()[0][2]
    block.set_mass(20.0)
    step(env, 40)
    assert block.get_pose()[0][2] < height - 0.1
    env.set_state(state)
    step(env, 40)
    assert block.get_pose()[0][2] == pytest.approx(height, abs=1e-3)


def test_other_engines_refuse(falling, make_block, monkeypatch):
    from internutopia.engines.base import World

    env = falling()
    monkeypatch.setattr(type(env.runner.world), 'change_scene', World.change_scene)
    with pytest.raises(NotImplementedError, match='only backend'):
        env.runner.add_object(make_block('late'))
