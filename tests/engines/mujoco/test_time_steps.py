"""Physics steps that the engine computes in shorter time steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.config import SimConfig
from internutopia.engines.factory import create_world
from internutopia.model.spec import ObjectSpec, RobotSpec, SceneSpec

CUBE = (0.04, 0.04, 0.04)  # m


def start(scenes: list[SceneSpec], **fields: Any) -> Any:
    world = create_world(SimConfig(threads=1, **fields), len(scenes), np.zeros((len(scenes), 3)))
    world.load({i: (world.prepare(scene), scene) for i, scene in enumerate(scenes)})
    return world


@pytest.mark.parametrize(
    ('physics_dt', 'max_timestep', 'parts'),
    [
        ('1/60', None, 4),
        ('1/120', None, 2),
        ('1/200', None, 1),
        ('1/240', None, 1),
        ('1/500', None, 1),
        ('1/60', '1/60', 1),
        ('1/60', '1/1000', 17),
        (0.3, 0.1, 3),  # not 4, though 0.3 / 0.1 is a little more than 3
    ],
)
def test_a_physics_step_takes_as_few_equal_parts_as_are_short_enough(models, physics_dt, max_timestep, parts):
    fields = {'physics_dt': physics_dt} | ({'max_timestep': max_timestep} if max_timestep else {})
    scene = SceneSpec(models['floor'], robots=(RobotSpec('arm', models['arm']),))
    world = start([scene], substeps=3, **fields)
    dt = SimConfig(**fields).physics_dt
    assert world.model(0).opt.timestep == dt / parts
    assert (world.dt, world.substeps, world.step_dt) == (dt, 3, 3 * dt)
    world.step(np.array([0]))
    assert world.times[0] == 3 * dt
    assert world.data(0).time == pytest.approx(3 * dt)
    world.close()


def test_the_parts_are_the_time_steps_of_a_shorter_physics_step_to_the_bit(models):
    scene = SceneSpec(models['crates'], robots=(RobotSpec('hopper', models['hopper'], position=(0, 0, 0.4)),))
    coarse, fine = start([scene], physics_dt='1/60'), start([scene], physics_dt='1/240', substeps=4)
    for _ in range(60):
        for world in (coarse, fine):
            world.step(np.array([0]))
    assert np.array_equal(coarse.data(0).qpos, fine.data(0).qpos)
    assert np.array_equal(coarse.data(0).qvel, fine.data(0).qvel)
    for world in (coarse, fine):
        world.close()


def through_the_wall(write_model, **fields) -> int:
    """How many of 16 cubes of 4 cm, at 3 m/s, have gone through a wall of 5 cm after a second."""
    wall = write_model(
        'wall',
        '<worldbody><geom type="plane" size="9 9 1"/><geom type="box" size="0.025 2 0.5" pos="1 0 0.5"/></worldbody>',
    )
    scenes = [
        SceneSpec(wall, objects=(ObjectSpec('cube', scale=CUBE, position=(0.5 + 0.003 * i, 0, 0.3), mass=0.1),))
        for i in range(16)
    ]
    world = start(scenes, physics_dt='1/60', **fields)
    cubes, all_envs = world.body('cube', 0), np.arange(16)
    cubes.set_velocities(all_envs, np.tile([3.0, 0.0, 0.0], (16, 1)))
    for _ in range(60):
        world.step(all_envs)
    gone = int((cubes.get_poses()[0][:, 0] > 1.0).sum())
    world.close()
    return gone


def test_small_things_do_not_pass_walls_by_default(write_model):
    assert through_the_wall(write_model) == 0
    assert through_the_wall(write_model, max_timestep='1/60') > 0  # what the bound is for


def test_a_time_step_has_to_be_positive():
    with pytest.raises(ValidationError, match='max_timestep'):
        SimConfig(max_timestep=0.0)
