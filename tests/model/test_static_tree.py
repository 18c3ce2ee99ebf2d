"""The tree of boxes around what never moves: the same contacts and rays, found with fewer boxes."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from internutopia.model import compilation
from internutopia.model.compilation import compile_scene
from internutopia.model.spec import SceneSpec

ROOM = 4.0  # m
ROOMS = 6  # along x and y each


def write_rooms(path: Path) -> Path:
    """Rooms with a floor, a ceiling, two walls and things that lie about in any direction, and balls among these."""
    rng = np.random.default_rng(0)
    geoms, balls = [], []
    for x, y in np.ndindex(ROOMS, ROOMS):
        a, b = ROOM * x, ROOM * y
        geoms += [f'<geom type="box" size="2 2 .05" pos="{a} {b} {z}"/>' for z in (-0.05, 2.8)]
        walls = [(0.05, ROOM * ROOMS / 2, a - 2, 10.0)] if y == 0 else []
        walls += [(2, 0.05, a, b - 2)]
        geoms += [f'<geom type="box" size="{w} {d} 1.4" pos="{i} {j} 1.4"/>' for w, d, i, j in walls]
        for place in rng.uniform(-1.8, 1.8, (16, 2)) + (a, b):
            angles = ' '.join(map(str, rng.uniform(0, 360, 3)))
            geoms.append(f'<geom type="box" size=".1 .15 .2" pos="{place[0]} {place[1]} .2" euler="{angles}"/>')
        ball = rng.uniform(-1.5, 1.5, 2) + (a, b)
        balls.append(f'<body pos="{ball[0]} {ball[1]} .29"><freejoint/><geom size=".3"/></body>')
    path.write_text(f'<mujoco><worldbody>{"".join(geoms)}{"".join(balls)}</worldbody></mujoco>')
    return path


@pytest.fixture
def scene(tmp_path: Path) -> SceneSpec:
    return SceneSpec(str(write_rooms(tmp_path / 'rooms.xml')))


@pytest.fixture
def own(scene: SceneSpec, monkeypatch: pytest.MonkeyPatch) -> mujoco.MjModel:
    """The scene with the tree that MuJoCo makes."""
    with monkeypatch.context() as context:
        context.setattr(compilation, 'MANY_GEOMS', 10_000)
        return compile_scene(scene, 1 / 240).model


def forward(model: mujoco.MjModel) -> mujoco.MjData:
    model.vis.global_.bvactive = True
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return data


def boxes_met_in_the_air(model: mujoco.MjModel) -> int:
    """Boxes of the world that the balls overlap where they touch nothing."""
    model.qpos0[2::7] = 1.8
    data = forward(model)
    assert not data.ncon
    return int(data.bvh_active[: model.body_bvhnum[0]].sum())


def test_contacts_are_those_that_are_found_without_a_tree(scene):
    model = compile_scene(scene, 1 / 240).model
    with_tree = forward(model).contact
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_MIDPHASE
    without = forward(model).contact
    found, expected = (
        sorted((*contact.geom.tolist(), contact.dist) for contact in each) for each in (with_tree, without)
    )
    assert found == expected and len(found) > ROOMS**2


def test_rays_hit_the_same(scene, own):
    model = compile_scene(scene, 1 / 240).model
    data, same = forward(model), forward(own)
    rng, geom = np.random.default_rng(1), np.zeros(1, np.int32)
    for _ in range(200):
        origin, along = rng.uniform((0, 0, 0.5), (20, 20, 2.5)), rng.normal(size=3)
        hits = []
        for each, state in ((model, data), (own, same)):
            hits.append((mujoco.mj_ray(each, state, origin, along, None, 1, -1, geom), int(geom[0])))
        assert hits[0] == hits[1]


def test_fewer_boxes_are_met(scene, own):
    model = compile_scene(scene, 1 / 240).model
    assert boxes_met_in_the_air(model) < 0.6 * boxes_met_in_the_air(own)


def test_things_in_one_place_make_no_deep_tree(tmp_path):
    """MuJoCo follows rays 50 boxes deep."""
    file = tmp_path / 'scene.xml'
    geoms = 600 * '<geom size=".1"/>'
    file.write_text(f'<mujoco><worldbody>{geoms}</worldbody></mujoco>')
    assert compile_scene(SceneSpec(str(file)), 1 / 240).model.bvh_depth.max() < 25
