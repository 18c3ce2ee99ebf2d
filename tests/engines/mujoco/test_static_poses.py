"""Scenes of many things that never move: they are placed once, and nothing else is different."""

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.config import SimConfig
from internutopia.engines.factory import create_world
from internutopia.engines.mujoco import env_batch
from internutopia.model.spec import SceneSpec

RADIUS = 0.1  # m, of the ball
REST = 240  # steps until it rests
SINKS = 2e-3  # m, by which it may sink into what it rests on


def write_scene(path: Path, height: float) -> Path:
    """A ball above a pedestal of a height [m], among more posts than count as many."""
    xs, ys = (np.arange(24) - 11.5, np.arange(24) - 11.5)
    posts = [f'<geom type="box" size=".1 .1 .2" pos="{x} {y} .2"/>' for x in xs for y in ys]
    path.write_text(
        f'<mujoco><worldbody><geom type="plane" size="20 20 1"/>{"".join(posts)}'
        f'<body name="pedestal" pos="0 0 {height - 0.5}"><geom type="box" size=".3 .3 .5"/></body>'
        f'<body name="ball" pos="0.02 0.01 {height + RADIUS}"><freejoint/><geom size="{RADIUS}"/></body>'
        '</worldbody></mujoco>'
    )
    return path


def make_world(env_num: int) -> Any:
    return create_world(SimConfig(physics_dt=1 / 240, threads=1), env_num, np.zeros((env_num, 3)))


def height_of_ball(world: Any, env_id: int) -> float:
    return float(world.data(env_id).qpos[2])


@pytest.mark.slow
@pytest.mark.parametrize('once', [True, False], ids=['once', 'each step'])
def test_a_batch_gives_the_bits_of_a_loop_over_mj_step(tmp_path, monkeypatch, once):
    """Also once everything is at rest, and would be asleep; also after a reset, and in a state that was kept."""
    if not once:
        monkeypatch.setattr(env_batch, 'MANY_GEOMS', 10_000)
    scene = SceneSpec(str(write_scene(tmp_path / 'scene.xml', 0.5)))
    world = make_world(2)
    prepared = world.prepare(scene)
    world.load({0: (prepared, scene), 1: (prepared, scene)})
    batch, _ = world.batch(0)
    assert batch.persistent == once
    model, data = prepared.model, mujoco.MjData(prepared.model)
    kept, place = world.get_state(0), data.qpos.copy()
    for step in range(REST):
        mujoco.mj_step(model, data)
        assert world.step(np.array([0, 1] if step % 2 else [0])) == {}
        assert np.array_equal(world.data(0).qpos, data.qpos) and np.array_equal(world.data(0).qvel, data.qvel)
        if step == 50:
            kept, place = world.get_state(0), data.qpos.copy()
        if step == 100:
            world.load({1: (prepared, scene)})
    assert np.abs(data.qvel).max() < 1e-3 and data.qvel.any()
    world.set_state(0, kept)
    assert np.array_equal(world.data(0).qpos, place)
    world.close()


def test_what_stands_elsewhere_in_another_scene_of_the_batch_is_found_there(tmp_path):
    scenes = [SceneSpec(str(write_scene(tmp_path / f'{h}.xml', h))) for h in (0.5, 0.8)]
    world = make_world(2)
    prepared = [world.prepare(scene) for scene in scenes]
    world.load({0: (prepared[0], scenes[0])})
    for _ in range(REST):
        world.step(np.array([0]))
    assert world.batch(0)[0].persistent
    before = world.data(0).qpos.copy()
    world.load({1: (prepared[1], scenes[1])})
    assert world.batch(0)[0] is world.batch(1)[0]
    assert np.array_equal(world.data(0).qpos, before)
    for _ in range(REST):
        world.step(np.array([0, 1]))
    for env_id, height in enumerate((0.5, 0.8)):
        assert height_of_ball(world, env_id) == pytest.approx(height + RADIUS, abs=SINKS)
    world.close()


def test_whoever_takes_the_model_of_an_env_may_move_what_is_fixed(tmp_path):
    scene = SceneSpec(str(write_scene(tmp_path / 'scene.xml', 0.5)))
    world = make_world(1)
    world.load({0: (world.prepare(scene), scene)})
    model, data = world.model(0), world.data(0)
    model.body('scene/pedestal').pos = [0, 0, 0.1]
    mujoco.mj_forward(model, data)
    assert data.body('scene/pedestal').xpos[2] == 0.1
    world.close()
