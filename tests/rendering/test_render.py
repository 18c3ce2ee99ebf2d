"""Pictures of `World.render`, against rays that the engine casts through the centres of the pixels."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.rendering import canvas, gl
from internutopia.rendering.camera import (
    BACKGROUND,
    CameraPose,
    Frame,
    Intrinsics,
    PictureKind,
    RenderRequest,
    half_angle,
)

SIZE = 32, 24
LENS = Intrinsics.of_height(half_angle(60.0), SIZE)
# What depth may be wrong by: 1 mm and 0.5 %
ABSOLUTE, RELATIVE = 1e-3, 5e-3
THINGS = """
<worldbody>
  <light pos="0 0 3" dir="0 0 -1"/>
  <geom type="plane" size="30 30 0.1" rgba="0.2 0.2 0.2 1"/>
  <geom type="box" size="0.3 0.2 0.4" pos="1.5 0.5 0.4" euler="0 0 30" rgba="1 0 0 1"/>
  <geom type="sphere" size="0.4" pos="2.5 -0.6 0.5" rgba="0 1 0 1"/>
  <geom type="capsule" size="0.1 0.4" pos="1 -0.3 0.6" euler="30 0 0" rgba="0 0 1 1"/>
</worldbody>"""


@pytest.fixture
def env(make_env, make_task, write_model, opengl):
    env = make_env(tasks=[make_task(write_model('things', THINGS), robots=[])], env_num=1)
    env.reset()
    return env


def frame(size=SIZE, labels: bool = False) -> Any:
    width, height = size
    return Frame(
        np.zeros((height, width, 4), np.uint8),
        np.zeros((height, width), np.float32),
        np.zeros((height, width), np.int32) if labels else None,
    )


def cast(env, camera_pose: CameraPose, size=SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Depth `(height, width)` [m] by rays, infinite where they hit nothing, and what geom they hit, -1 for none."""
    model, data = env.runner.world.model(0), env.runner.world.data(0)
    intrinsics, (width, height) = camera_pose.intrinsics, size
    depth, geoms = np.full((height, width), np.inf), np.full((height, width), -1)
    geom = np.zeros(1, np.int32)
    for v, u in np.ndindex(height, width):
        x = ((u + 0.5) / width * 2 - 1) * intrinsics.half_width + intrinsics.centre[0]
        y = (1 - (v + 0.5) / height * 2) * intrinsics.half_height + intrinsics.centre[1]
        start, ray = ([x, y, 0], [0, 0, -1]) if intrinsics.orthographic else ([0, 0, 0], [x, y, -1])
        start, ray = camera_pose.position + camera_pose.rotation @ start, camera_pose.rotation @ np.array(ray, float)
        distance = mujoco.mj_ray(model, data, start, ray, None, 1, -1, geom)
        if distance >= 0:
            depth[v, u], geoms[v, u] = distance, geom[0]  # of a ray of length 1 ahead
    return depth, geoms


def assert_same_depth(rendered: np.ndarray, cast: tuple[np.ndarray, np.ndarray]) -> None:
    depth, geoms = cast
    # at an edge, round shapes being rendered as polyhedra, a pixel may show either side
    neighbours = [np.roll(geoms, shift, axis) for axis in (0, 1) for shift in (-1, 1)]
    plain = (np.array(neighbours) == geoms).all(axis=0)
    assert plain.mean() > 0.6
    np.testing.assert_allclose(rendered[plain], depth[plain], rtol=RELATIVE, atol=ABSOLUTE)


@pytest.mark.parametrize('quality', ['fast', 'full'])
@pytest.mark.parametrize(
    'position, target, intrinsics',
    [
        ((0.0, 0.0, 0.8), (2.0, 0.0, 0.4), LENS),
        ((1.5, 0.0, 4.0), (1.5, 0.0, 0.0), LENS),
        ((0.0, 0.0, 2.0), (2.0, 0.0, 0.4), Intrinsics.of_height(1.0, SIZE, orthographic=True)),
        ((-1.0, 0.5, 1.5), (2.0, 0.0, 0.4), replace(LENS, centre=(0.15, -0.1))),
    ],
    ids=['ahead', 'down', 'orthographic', 'off_centre'],
)
def test_depth_is_what_rays_measure(env, quality, position, target, intrinsics):
    camera_pose = CameraPose.looking_at(target, position, intrinsics)
    picture = frame()
    env.runner.world.render([RenderRequest(0, camera_pose, picture)], quality)
    assert picture.depth is not None and picture.depth.dtype == np.float32
    assert_same_depth(picture.depth, cast(env, camera_pose))


def test_depth_alone_is_the_same(env):
    camera_pose = CameraPose.looking_at((2.0, 0.0, 0.4), (0.0, 0.0, 0.8), LENS)
    depth = np.zeros(SIZE[::-1], np.float32)
    env.runner.world.render([RenderRequest(0, camera_pose, Frame(depth=depth))])
    assert_same_depth(depth, cast(env, camera_pose))


PAINTED = """
<asset>
  <texture name="sky" type="skybox" builtin="gradient" rgb1="0.2 0.4 0.6" rgb2="0.4 0.6 0.8" width="16" height="96"/>
  <texture name="checker" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1" width="64" height="64"/>
  <material name="checker" texture="checker" texrepeat="4 4"/>
</asset>
<worldbody>
  <geom type="box" size="0.5 0.5 0.5" pos="2 0 0.5" material="checker"/>
  <geom type="box" size="0.5 0.5 0.5" pos="2 0 1.5" material="checker" rgba="1 1 1 1"/>
</worldbody>"""


@pytest.mark.slow
def test_plain_pictures_have_the_mean_colours_of_textures_and_sky_and_the_same_depth(
    make_env, make_task, write_model, opengl
):
    env = make_env(tasks=[make_task(write_model('painted', PAINTED), robots=[])], env_num=1)
    env.reset()
    camera_pose = CameraPose.looking_at((2.0, 0.0, 1.0), (-1.0, 0.0, 1.0), LENS)
    fast, plain, labelled = frame(), frame(), frame(labels=True)
    for quality, picture in (('fast', fast), ('plain', plain), ('plain', labelled), ('fast', again := frame())):
        env.runner.world.render([RenderRequest(0, camera_pose, picture)], quality)
    np.testing.assert_array_equal(plain.depth, fast.depth)
    np.testing.assert_array_equal(plain.rgba, labelled.rgba)
    np.testing.assert_array_equal(again.rgba, fast.rgba)  # the model has its own colours again
    sky = np.isinf(plain.depth)
    assert 0.2 < sky.mean() < 0.9
    np.testing.assert_allclose(plain.rgba[sky][:, :3], [[77, 128, 179]] * sky.sum(), atol=2)
    red, _, blue, _ = np.moveaxis(plain.rgba[~sky].astype(int), -1, 0)
    assert red.min() > 20 and abs(red - blue).max() <= 2
    red, _, blue, _ = np.moveaxis(fast.rgba[~sky].astype(int), -1, 0)
    assert (red > 2 * blue).any() and (blue > 2 * red).any()


OPEN = """
<asset>{sky}<texture name="cube" type="cube" builtin="flat" rgb1="0.5 0.4 0.3" width="8" height="48"/></asset>
<worldbody>
  <light pos="0 0 3" dir="0 0 -1"/>
  <geom type="plane" size="0 0 1" rgba="0.2 0.3 0.2 1"/>
  <geom type="box" size="0.3 0.2 0.4" pos="2 0.3 0.9" euler="0 0 30" rgba="1 0 0 1"/>
  <geom name="pane" type="box" size="0.01 0.5 0.5" pos="1.2 -0.4 1.6" rgba="0.4 0.4 1 0.3"/>
  <geom type="box" size="5 5 400" pos="900 -300 400" rgba="0.5 0.5 0.5 1"/>
  <geom type="sphere" size="40" pos="0 0 6000" rgba="0.5 0.5 0.5 1"/>
</worldbody>"""
SKY = (
    '<texture name="sky" type="skybox" builtin="gradient" rgb1="0.4 0.6 0.8" rgb2="0.9 0.9 1" width="64" height="384"/>'
)
KINDS: tuple[tuple[PictureKind, ...], ...]
KINDS = ('depth',), ('rgba', 'depth'), ('depth', 'labels'), ('rgba', 'depth', 'labels')
OPEN_VIEWS = {
    'ahead': ((0.0, 0.0, 1.5), (2.0, 0.0, 1.5), LENS),
    'wide': ((0.0, 0.0, 1.5), (2.0, 0.0, 1.5), Intrinsics.of_height(half_angle(168.0), SIZE)),
    'off_centre': ((0.0, 0.0, 1.5), (2.0, 0.0, 1.5), replace(LENS, centre=(0.3, 0.4))),
    'up': ((0.0, 0.0, 1.5), (0.0, 0.0, 2.0), Intrinsics.of_height(0.1, SIZE)),
    'down': ((0.0, 0.0, 3.0), (0.0, 0.0, 0.0), LENS),
    'from_below': ((0.0, 0.0, -1.0), (2.0, 0.0, 1.0), LENS),
    'high': ((0.0, 0.0, 700.0), (5.0, 0.0, 699.0), LENS),  # the floor ends in haze
    'orthographic': ((0.0, 0.0, 2.0), (2.0, 0.0, 2.1), Intrinsics.of_height(3.0, SIZE, orthographic=True)),
    'orthographic_up': ((0.0, 0.0, 2.0), (0.0, 0.0, 4.0), Intrinsics.of_height(50.0, SIZE, orthographic=True)),
}


@pytest.mark.slow
def test_a_sky_is_infinitely_far_away(make_env, make_task, write_model, opengl):
    """Depth is that of the same scene without a sky, whatever else is rendered with it, and changes no colour."""
    scenes = [write_model(f'open_{bool(sky)}', OPEN.format(sky=sky)) for sky in (SKY, '')]
    env = make_env(tasks=[make_task(scene, robots=[]) for scene in scenes], env_num=2)
    env.reset()
    empty = []
    for name, (position, target, intrinsics) in OPEN_VIEWS.items():
        camera_pose = CameraPose.looking_at(target, position, intrinsics)
        for quality, kinds in itertools.product(('fast', 'full') if name == 'ahead' else ('fast',), KINDS):
            frames, alone = Frame.blank(SIZE, kinds, 2), Frame.blank(SIZE, ('rgba',))
            env.runner.world.render(
                [RenderRequest(i, camera_pose, frames.row(i)) for i in range(2)]
                + [RenderRequest(0, camera_pose, alone)],
                quality,
            )
            assert frames.depth is not None and alone.rgba is not None
            np.testing.assert_array_equal(frames.depth[0], frames.depth[1], f'{name}, {quality}, {kinds}')
            empty.append(np.isinf(frames.depth[0]).mean())
            if frames.rgba is not None:
                np.testing.assert_array_equal(frames.rgba[0], alone.rgba)
                assert name == 'down' or (frames.rgba[0] != frames.rgba[1]).any()
    assert 0.2 < np.mean(empty) < 0.8


def test_colours_and_nothing(env):
    world = env.runner.world
    pictures = [frame(labels=True), frame(labels=True)]
    up = CameraPose.looking_at((0.0, 0.0, 9.0), (0.0, 0.0, 2.0), LENS)
    red = CameraPose.looking_at((1.5, 0.5, 0.4), (0.0, 0.5, 0.4), Intrinsics.of_height(0.05, SIZE))
    world.render([RenderRequest(0, up, pictures[0]), RenderRequest(0, red, pictures[1])])
    assert np.isinf(pictures[0].depth).all() and (pictures[0].labels == BACKGROUND).all()
    r, g, b, alpha = np.moveaxis(pictures[1].rgba.astype(int), -1, 0)
    assert (r > 60).all() and (g < 0.2 * r).all() and (b < 0.2 * r).all() and (alpha == 255).all()


def test_full_pictures_have_shadows(make_env, make_task, write_model, opengl):
    lit = """<visual><headlight diffuse="0 0 0" ambient="0.2 0.2 0.2"/></visual>
    <worldbody><light pos="0 0 4" dir="0 0 -1" directional="true"/><geom type="plane" size="5 5 0.1"/>
    <geom type="box" size="0.5 0.5 0.02" pos="0 0 1"/></worldbody>"""
    env = make_env(tasks=[make_task(write_model('lit', lit), robots=[])], env_num=1)
    env.reset()
    under = CameraPose.looking_at((0.0, 0.0, 0.0), (0.0, -1.5, 0.4), Intrinsics.of_height(0.05, SIZE))
    pictures = {quality: frame() for quality in ('fast', 'full')}
    for quality, picture in pictures.items():
        env.runner.world.render([RenderRequest(0, under, picture)], quality)
    assert pictures['full'].rgba[12, 16, 0] < 0.7 * pictures['fast'].rgba[12, 16, 0]


@pytest.mark.slow
def test_any_number_of_threads_draws_the_same(make_env, make_task, make_robot, opengl):
    camera_pose = CameraPose.looking_at((0.0, 0.0, 0.3), (1.0, 0.5, 0.8), LENS)
    pictures = {}
    for threads in (1, 3):
        tasks = [make_task(scene, robots=[make_robot('hopper', position=(0, 0, 0.5))]) for scene in ('floor', 'crates')]
        env = make_env(tasks=tasks, env_num=4, episode_order='cycle', sim={'threads': threads})
        env.reset()
        pictures[threads] = [frame() for _ in range(4)]
        for _ in range(2):  # a second time with what is there already
            env.runner.world.render(
                [RenderRequest(i, camera_pose, picture) for i, picture in enumerate(pictures[threads])]
            )
        env.close()
    for one, other in zip(*pictures.values(), strict=True):
        assert (one.rgba == other.rgba).all() and (one.depth == other.depth).all()
    assert (pictures[1][0].rgba != pictures[1][1].rgba).any() and (pictures[1][0].rgba == pictures[1][2].rgba).all()


@pytest.fixture
def software(opengl) -> None:
    """Skips where a GPU renders."""
    with ThreadPoolExecutor(1) as other_thread:  # OpenGL is bound to threads
        if not other_thread.submit(lambda: canvas.Canvas('fast').in_software).result():
            pytest.skip('a GPU renders')


@pytest.mark.slow
@pytest.mark.parametrize('envs, threads', [(1, 2), (2, 1)])
def test_software_renders_one_picture_at_a_time(make_env, make_task, monkeypatch, software, envs: int, threads: int):
    """Mesa's crashes with two; within a renderer, and where threads step envs of their own."""
    made = [
        make_env(tasks=[make_task('floor'), make_task('crates')], env_num=2, sim={'threads': threads})
        for _ in range(envs)
    ]
    for env in made:
        env.reset()
    both, met, render = threading.Barrier(2), [], mujoco.mjr_render

    def meet(*args: Any) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(0.2)  # s, for another one
            met.append(True)
        render(*args)

    monkeypatch.setattr(mujoco, 'mjr_render', meet)
    with ThreadPoolExecutor(2) as programs:
        pictures = list(programs.map(lambda env: env.render(), made))
    assert not met and all(picture.any() for picture in pictures)


def test_a_fork_waits_for_the_picture_that_is_rendered(env, monkeypatch, software):
    """A child gets none half done."""
    camera_pose = CameraPose.looking_at((2.0, 0.0, 0.4), (0.0, 0.0, 0.8), LENS)
    begun, forked, events, render = threading.Event(), threading.Event(), [], mujoco.mjr_render

    def slow(*args: Any) -> None:
        begun.set()
        forked.wait(0.2)
        render(*args)
        events.append('rendered')

    env.runner.world.render([RenderRequest(0, camera_pose, frame())])
    monkeypatch.setattr(mujoco, 'mjr_render', slow)
    with ThreadPoolExecutor(1) as other_thread:
        picture = other_thread.submit(env.runner.world.render, [RenderRequest(0, camera_pose, frame())])
        begun.wait()
        if (child := os.fork()) == 0:
            os._exit(0)
        events.append('forked')
        forked.set()
        os.waitpid(child, 0)
        picture.result()
    assert events == ['rendered', 'forked']


def test_pictures_may_become_larger(env):
    camera_pose = CameraPose.looking_at((2.0, 0.0, 0.4), (0.0, 0.0, 0.8), LENS)
    large = frame((64, 48))
    for picture in (frame(), large):
        env.runner.world.render([RenderRequest(0, camera_pose, picture)])
    assert_same_depth(large.depth, cast(env, camera_pose, (64, 48)))


def _render_in_child(env, camera_pose, expected, queue):
    picture = frame()
    env.runner.world.render([RenderRequest(0, camera_pose, picture)])
    queue.put((picture.depth == expected).all())


def test_a_forked_child_draws_too(env):
    camera_pose = CameraPose.looking_at((2.0, 0.0, 0.4), (0.0, 0.0, 0.8), LENS)
    picture = frame()
    env.runner.world.render([RenderRequest(0, camera_pose, picture)])
    context = multiprocessing.get_context('fork')
    queue = context.SimpleQueue()
    child = context.Process(target=_render_in_child, args=(env, camera_pose, picture.depth, queue))
    child.start()
    child.join(20)
    hangs = child.is_alive()
    child.kill()
    assert not hangs and queue.get()


def test_without_opengl_the_error_says_what_to_install(make_env, make_task, monkeypatch):
    env = make_env(tasks=[make_task('floor')], env_num=1)
    env.reset()
    for name in ('egl', 'osmesa', 'cgl', 'glfw'):
        monkeypatch.setitem(sys.modules, f'mujoco.{name}', None)
    with pytest.raises(gl.NoOpenGLError, match='apt install libegl1'):
        env.render()
    monkeypatch.setenv('MUJOCO_GL', 'off')
    with pytest.raises(gl.NoOpenGLError, match='MUJOCO_GL=off'):
        env.render()
    assert env.step([None])[0][0] is not None


def test_opengl_starts_with_the_first_picture(make_env, make_task, monkeypatch, opengl):
    opened = []
    monkeypatch.setattr(canvas, 'open_context', lambda: opened.append(1) or gl.open_context())
    env = make_env(tasks=[make_task('floor')], env_num=1)
    env.reset()
    env.step([None])
    assert not opened
    env.render()
    assert opened


@pytest.mark.slow
def test_a_choice_that_mujoco_does_not_know_is_named_with_those_it_knows() -> None:
    environment = {**os.environ, 'MUJOCO_GL': 'nonsense'}
    script = [sys.executable, '-c', 'from internutopia import Env']
    ended = subprocess.run(script, env=environment, capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1].startswith(
        "ValueError: the environment variable MUJOCO_GL is 'nonsense': expected 'egl', 'osmesa'"
    )
