"""Ray traced pictures, on Warp's CPU device: the tests of camera sensors once more, and OpenGL's pictures beside."""

from __future__ import annotations

import dataclasses
import gc
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.config import Config, SimConfig
from internutopia.engines.base import World
from internutopia.engines.factory import create_world
from internutopia.engines.warp import arrays
from internutopia.model.spec import CameraSpec, ObjectSpec, RobotSpec, SceneSpec
from internutopia.rendering import canvas
from internutopia.rendering.camera import BACKGROUND, PictureKind
from internutopia_extension import import_extensions

import_extensions()
_names = runpy.run_path(str(Path(__file__).parents[2] / 'extension' / 'sensors' / 'test_rep_camera.py'))
_tests = {name: value for name, value in _names.items() if name.startswith('test_')}
globals().update({'scout': _names['scout'], **_tests})
for _name in _tests.keys() - {'test_a_known_box'}:
    pytest.mark.slow(_tests[_name])

RAYTRACE = {'backend': 'mujoco_warp', 'renderer': 'raytrace'}
SIZE = W, H = 32, 24
OPENGL = {'backend': 'mujoco', 'renderer': 'opengl'}
KINDS: tuple[PictureKind, ...] = ('rgba', 'depth', 'labels')
ROUND = 5e-3  # what OpenGL's depth may be wrong by where shapes are round, for it draws polyhedra
SCOUT = _names['SCOUT']
CUBE = ObjectSpec('cube', scale=(0.4, 0.6, 0.6), position=(2.0, 0.0, 0.3), color=(1.0, 0.0, 0.0), mass=1.0)
FACE = 1.8 - 0.05  # m, from the camera to the cube
# every shape there is, side by side, on a dull floor and not in bright light: OpenGL lights large faces at their
# corners only, and no texture beyond its own colours
GALLERY = """
<asset>
  <texture name="sky" type="skybox" builtin="gradient" rgb1="0.3 0.5 0.7" rgb2="0.1 0.2 0.3" width="64" height="64"/>
  <texture name="tiles" type="2d" builtin="checker" rgb1="0.8 0.8 0.8" rgb2="0.2 0.2 0.4" width="64" height="64"/>
  <material name="tiles" texture="tiles" texrepeat="1 1" texuniform="true" specular="0"/>
  <mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1" scale="0.6 0.6 0.6"/>
  <hfield name="hills" nrow="3" ncol="3" elevation="0 1 0  1 2 1  0 1 0" size="0.8 0.8 0.3 0.1"/>
</asset>
<worldbody>
  <light directional="true" dir="0.5 0.2 -1" diffuse="0.4 0.4 0.4" specular="0 0 0"/>
  <geom type="plane" size="0 0 1" material="tiles"/>
  <geom type="box" size="0.2 0.2 0.3" pos="1.6 1 0.3" euler="0 0 30" rgba="1 0 0 1"/>
  <geom type="sphere" size="0.25" pos="1.6 0.4 0.3" rgba="0 1 0 1"/>
  <geom type="capsule" size="0.1 0.2" pos="1.6 -0.1 0.4" euler="20 0 0" rgba="0 0 1 1"/>
  <geom type="cylinder" size="0.15 0.2" pos="1.6 -0.6 0.3" euler="0 40 0" rgba="1 1 0 1"/>
  <geom type="ellipsoid" size="0.1 0.2 0.3" pos="1.6 -1 0.4" rgba="1 0 1 1"/>
  <geom type="mesh" mesh="wedge" pos="2.6 1.2 0.2" euler="0 0 160" rgba="0 1 1 1"/>
  <geom type="hfield" hfield="hills" pos="3.5 -1 0.1" rgba="0.5 0.4 0.3 1"/>
  <geom type="box" size="0.1 0.1 0.1" pos="0.6 0 0.5" group="3"/>
  <geom type="box" size="0.002 0.1 0.1" pos="0.055 0 0.5"/>
</worldbody>"""


@pytest.fixture(scope='session')
def make_config(make_config: Callable[..., Config]) -> Callable[..., Config]:
    """The configs of the tests of camera sensors with this renderer."""

    def make(tasks: Any = 2, env_num: int = 2, sim: dict[str, Any] | None = None, **fields: Any) -> Config:
        return make_config(tasks, env_num, RAYTRACE | (sim or {}), **fields)

    return make


@pytest.fixture
def make_world() -> Iterator[Callable[..., World]]:
    """Makes a world whose envs are started in scenes, one for each; ray traced unless told otherwise."""
    worlds: list[World] = []

    def make(*scenes: SceneSpec, env_num: int = 0, device_arrays: bool = False, **sim: Any) -> World:
        n = env_num or len(scenes)
        config = SimConfig.model_validate(RAYTRACE | sim)
        worlds.append(create_world(config, n, np.zeros((n, 3)), device_arrays))
        start(worlds[-1], dict(enumerate(scenes)))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


@pytest.fixture
def scene(write_model: Callable[[str, str], str], models: dict[str, str]) -> SceneSpec:
    """A scout that looks at a red cube on a floor."""
    return SceneSpec(models['floor'], robots=(RobotSpec('scout', write_model('scout', SCOUT)),), objects=(CUBE,))


def start(world: World, scenes: dict[int, SceneSpec]) -> None:
    world.load({env_id: (world.prepare(scene), scene) for env_id, scene in scenes.items()})


def look(world: World, path: str = 'head/eye', env_id: int = 0) -> dict[str, Any]:
    """Pictures of all envs; `env_id` is one that has the camera."""
    pictures = world.camera('scout', path, env_id).pictures(SIZE, KINDS)
    return {kind: np.array(picture) for kind, picture in pictures.items()}


def ahead(world: World) -> Any:
    """Depth [m] in the middle of the pictures of all envs."""
    return look(world, env_id=1 if world.env_num > 1 else 0)['depth'][:, H // 2, W // 2]


def drive(world: World, positions: list[float], env_ids: Any = None) -> None:
    """Put scouts somewhere along x [m]."""
    env_ids = np.arange(len(positions)) if env_ids is None else np.array(env_ids)
    values = [[x, 0.0] for x in positions]
    world.articulation('scout', int(env_ids[0])).set_joint_positions(env_ids, np.array(values, np.float32))


@pytest.mark.nightly
@pytest.mark.usefixtures('opengl')
@pytest.mark.parametrize('path', ['head/eye', 'head/map', 'head/left'])
def test_it_draws_what_opengl_draws(make_world: Any, scene: SceneSpec, write_model: Any, path: str) -> None:
    left = CameraSpec('head/left', (0.0, 0.0, 0.3), (0.5736, 0.4096, -0.4096, -0.5736), 80.0)
    robot = dataclasses.replace(scene.robots[0], cameras=(left,))
    gallery = SceneSpec(write_model('gallery', GALLERY), robots=(robot,), objects=(CUBE,))
    ours, other = look(make_world(gallery), path), look(make_world(gallery, **OPENGL), path)
    same = ours['labels'] == other['labels']
    assert same.mean() > 0.99
    sky = np.isinf(ours['depth'])
    assert sky.any() == (path != 'head/map') and (sky == np.isinf(other['depth'])).mean() > 0.99
    for pictures in (ours, other):
        pictures['depth'][np.isinf(pictures['depth'])] = 1e3
    close = np.abs(ours['depth'] - other['depth']) < 1e-3 + ROUND * other['depth']
    assert (close & same).mean() > 0.95  # the rest are edges
    colours, others = (pictures['rgba'][..., :3].astype(float) for pictures in (ours, other))
    np.testing.assert_allclose(colours.mean(axis=(0, 1, 2)), others.mean(axis=(0, 1, 2)), atol=3.0)
    assert np.median(np.abs(colours - others)) < 8.0 and (ours['rgba'][..., 3] == 255).all()


@pytest.mark.nightly
def test_full_pictures_have_shadows_and_smooth_edges(make_world: Any, scene: SceneSpec, write_model: Any) -> None:
    lit = """<worldbody>
    <light pos="0 0 4" dir="0 0 -1" directional="true"/><geom type="plane" size="5 5 0.1"/>
    <geom type="box" size="0.5 0.5 0.02" pos="2 0 1.5"/></worldbody>"""
    scene = dataclasses.replace(scene, asset=write_model('lit', lit), objects=())
    fast, full = (look(make_world(scene, render_quality=quality)) for quality in ('fast', 'full'))
    np.testing.assert_array_equal(fast['depth'], full['depth'])
    np.testing.assert_array_equal(fast['labels'], full['labels'])
    column = slice(H // 2, None), W // 2  # the floor ahead
    floor = np.abs(0.5 - fast['depth'][0][column] * (np.arange(H // 2) + 0.5) * 2 / H * np.tan(np.pi / 6)) < 1e-3
    x = 0.05 + fast['depth'][0][column]
    bright, dark = (pictures['rgba'][0][column][:, 0][floor & (x > 1.6) & (x < 2.4)] for pictures in (fast, full))
    assert len(dark) and dark.min() < 0.3 * bright.min()
    assert len(np.unique(full['rgba'][..., 0])) > len(np.unique(fast['rgba'][..., 0])) + 2


@pytest.mark.slow
@pytest.mark.parametrize('apart', [False, True], ids=['shared', 'apart'])
def test_pictures_follow_the_world(
    make_world: Any, scene: SceneSpec, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    """Wherever the memory of the device is, and without OpenGL."""
    monkeypatch.setattr(arrays, 'shares_memory', lambda device: not apart)
    monkeypatch.setattr(canvas, 'open_context', lambda: pytest.fail('OpenGL was opened'))
    world = make_world(scene, scene)
    np.testing.assert_allclose(ahead(world), FACE, atol=1e-4)
    drive(world, [0.5, -0.25])
    np.testing.assert_allclose(ahead(world), [FACE - 0.5, FACE + 0.25], atol=1e-4)
    world.body('cube', 0).set_poses(np.array([1]), [[3.0, 0.0, 0.3]])
    np.testing.assert_allclose(ahead(world), [FACE - 0.5, FACE + 1.25], atol=1e-4)
    world.camera('scout', 'head/eye', 0).set_poses(np.array([0]), [[0.05, 0.2, 0.5]])
    np.testing.assert_allclose(ahead(world), [FACE, FACE + 1.25], atol=1e-4)
    world.step(np.arange(2))
    position = world.articulation('scout', 0).get_joint_positions()[:, 0]
    assert ahead(world)[1] == pytest.approx(FACE + 1.0 - position[1], abs=1e-4)


@pytest.mark.slow
def test_env_batches_and_envs_that_come_and_go(make_world: Any, scene: SceneSpec, models: dict[str, str]) -> None:
    """Three structures, an env that joins later so that its batch grows, and one that leaves."""
    crates = dataclasses.replace(scene, asset=models['crates'], objects=())
    bare = dataclasses.replace(scene, objects=())
    world = make_world(scene, crates, bare, env_num=5)
    drive(world, [0.25], [0])
    expected = [FACE - 0.25, 1.45 - 0.05, np.inf]
    np.testing.assert_allclose(ahead(world)[:3], expected, atol=1e-4)
    start(world, {3: scene, 4: scene})
    drive(world, [-0.5], [4])
    np.testing.assert_allclose(ahead(world), [*expected, FACE, FACE + 0.5], atol=1e-4)
    world.unload(np.array([0]))
    start(world, {1: scene})
    np.testing.assert_allclose(ahead(world)[1:], [FACE, np.inf, FACE, FACE + 0.5], atol=1e-4)
    assert (look(world, env_id=1)['labels'][1:] == 0).any(axis=(1, 2)).tolist() == [True, False, True, True]


def test_colours_and_intrinsics_of_scenes_that_share_a_batch(
    make_world: Any, scene: SceneSpec, write_model: Any
) -> None:
    wide = write_model('wide', SCOUT.replace('fovy="60"', 'fovy="90"'))
    blue = dataclasses.replace(CUBE, color=(0.0, 0.0, 1.0))
    other = dataclasses.replace(scene, robots=(dataclasses.replace(scene.robots[0], asset=wide),), objects=(blue,))
    world = make_world(scene, other, scene)
    assert len(set(world.batch_id.tolist())) == 1
    pictures = look(world)
    red, _, blue = np.moveaxis(pictures['rgba'][:, H // 2, W // 2].astype(int), -1, 0)[:3]
    assert red[0] > 2 * blue[0] and blue[1] > 2 * red[1] and red[2] > 2 * blue[2]
    size = (pictures['labels'] == 0).sum(axis=(1, 2))
    assert size[0] == size[2] and size[1] == pytest.approx(size[0] / 3.0, rel=0.3)  # tan(45 deg) / tan(30 deg), squared
    start(world, {0: other, 1: scene})  # to the places of one another
    assert (look(world)['labels'] == 0).sum(axis=(1, 2)).tolist() == size[[1, 0, 2]].tolist()


@pytest.mark.slow
def test_a_batch_forgets_what_it_captured_for_tracers_that_are_gone(
    make_world: Any, scene: SceneSpec, write_model: Any
) -> None:
    """Scenes of a batch have a tracer for each of their intrinsics; what is captured is seen on a GPU alone."""
    wide = write_model('wide', SCOUT.replace('fovy="60"', 'fovy="90"'))
    other = dataclasses.replace(scene, robots=(dataclasses.replace(scene.robots[0], asset=wide),))
    world = make_world(scene, scene)
    (env_batch,) = world.env_batches
    for second, tracers in ((scene, 1), (other, 2), (scene, 1), (other, 2)):
        start(world, {1: second})
        look(world)
        gc.collect()
        assert len(env_batch.batch._tracer_calls) == tracers


@pytest.mark.usefixtures('opengl')
@pytest.mark.parametrize('sim', [RAYTRACE, OPENGL], ids=['raytrace', 'opengl'])
def test_nobody_is_left(make_world: Any, scene: SceneSpec, sim: dict[str, Any]) -> None:
    world = make_world(scene, scene, **sim)
    camera = world.camera('scout', 'head/eye', 0)
    before = np.array(camera.pictures(SIZE, KINDS)['depth'])
    world.unload(np.arange(2))
    np.testing.assert_array_equal(camera.pictures(SIZE, KINDS)['depth'], before)


def test_nothing_to_see(make_world: Any, write_model: Any) -> None:
    robot = RobotSpec('scout', write_model('scout', SCOUT.replace('<geom ', '<geom group="3" ')))
    pictures = look(make_world(SceneSpec(None, robots=(robot,))))
    assert np.isinf(pictures['depth']).all() and (pictures['labels'] == BACKGROUND).all()
    assert (pictures['rgba'] == [0, 0, 0, 255]).all()


def test_tensors_are_the_memory_of_the_engine(
    make_world: Any, scene: SceneSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip('torch')
    world = make_world(scene, scene, device_arrays=True)
    camera = world.camera('scout', 'head/eye', 0)
    pictures = camera.pictures(SIZE, KINDS)
    assert all(isinstance(picture, torch.Tensor) for picture in pictures.values())
    assert pictures['rgba'].shape == (2, H, W, 4) and pictures['rgba'].dtype == torch.uint8
    middle = pictures['depth'][:, H // 2, W // 2]
    before = middle.tolist()
    world.articulation('scout', 0).set_joint_positions(world.arrays.asarray([0, 1]), torch.tensor([[0.5, 0.0]] * 2))
    monkeypatch.setattr('warp.array.numpy', lambda array: pytest.fail('the host looked at it'))
    camera.pictures(SIZE, KINDS)
    np.testing.assert_allclose(before, FACE, atol=1e-4)
    np.testing.assert_allclose(middle, FACE - 0.5, atol=1e-4)  # the same tensor shows the new picture


def test_who_draws_is_said_by_the_config(make_world: Any, scene: SceneSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, 'open_context', lambda: pytest.fail('OpenGL was opened'))
    look(make_world(scene))
    for sim in (OPENGL, {'renderer': 'opengl'}, {'renderer': 'auto'}):
        with pytest.raises(pytest.fail.Exception, match='OpenGL was opened'):
            look(make_world(scene, **sim))
    with pytest.raises(ValueError, match="renderer='raytrace': backend 'mujoco' renders with OpenGL"):
        make_world(scene, backend='mujoco')


def test_too_many_pixels(make_world: Any, scene: SceneSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError('Failed to allocate 99 bytes')

    world = make_world(scene)
    monkeypatch.setattr('mujoco_warp.create_render_context', fail)
    with pytest.raises(MemoryError, match=r"pictures of 32 x 24 pixels of 1 envs .* smaller resolution .*'opengl'"):
        look(world)
