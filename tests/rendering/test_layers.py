"""Layers of pictures, and markers in them."""

from typing import Any

import numpy as np
import pytest

from internutopia.rendering.camera import CameraPose, Frame, Intrinsics, Layer, Marker, RenderRequest, half_angle

SIZE = 64, 48
POSE = CameraPose.looking_at((2.0, 0.0, 0.4), (0.0, 0.0, 0.8), Intrinsics.of_height(half_angle(60.0), SIZE))
SCENE = """
<asset>
  <texture name="sky" type="skybox" builtin="gradient" rgb1="0.4 0.6 0.8" rgb2="1 1 1" width="64" height="384"/>
</asset>
<worldbody>
  <light pos="0 0 3" dir="0 0 -1"/>
  <geom type="plane" size="0 0 1" rgba="0.2 0.2 0.2 1"/>
  <geom type="box" size="0.1 0.3 0.4" pos="2 0.6 0.4" rgba="1 0 0 1"/>
  {still}
  <body name="ball" pos="2 0.2 0.3"><freejoint/><geom type="sphere" size="0.3" rgba="0 1 0 1"/></body>
  <body name="box" pos="3 -0.9 0.3"><freejoint/><geom type="box" size="0.2 0.2 0.3" rgba="0 0 1 1"/></body>
</worldbody>"""
PANE = '<geom type="box" size="0.01 1 0.5" pos="1.2 0 0.5" rgba="1 1 1 0.3"/>'


@pytest.fixture
def start(make_env: Any, make_task: Any, write_model: Any, opengl: None) -> Any:
    def start(still: str = '') -> Any:
        scene = write_model(f'layers{len(still)}', SCENE.format(still=still))
        env = make_env(tasks=[make_task(scene, robots=[])], env_num=1)
        env.reset()
        return env

    return start


def picture(env: Any, layer: Layer = 'all', *markers: Marker) -> tuple[np.ndarray, np.ndarray]:
    frame = Frame.blank(SIZE, ('rgba', 'depth'))
    assert frame.depth is not None
    frame.depth[:] = np.inf
    env.runner.world.render([RenderRequest(0, POSE, frame, markers, layer)])
    assert frame.rgba is not None and frame.depth is not None
    return frame.rgba, frame.depth


def merged(env: Any) -> tuple[np.ndarray, np.ndarray]:
    (still, far), (moving, near) = picture(env, 'still'), picture(env, 'moving')
    return np.where((near < far)[..., None], moving, still), np.minimum(near, far)


def test_layers_make_the_whole_picture(start: Any) -> None:
    env = start()
    rgba, depth = picture(env)
    colours, distances = merged(env)
    assert np.abs(rgba.astype(int) - colours).max() <= 1  # parts of a picture are rounded in another way
    np.testing.assert_allclose(distances, depth, rtol=1e-5)
    still, moving = picture(env, 'still'), picture(env, 'moving')
    assert (rgba[:, :, 1] > 1.5 * rgba[:, :, 2]).any() > (still[0][:, :, 1] > 1.5 * still[0][:, :, 2]).any()  # a ball
    assert 0.02 < np.isfinite(moving[1]).mean() < 0.4 and not moving[0][np.isinf(moving[1])].any()


@pytest.mark.slow
def test_what_moves_is_seen_through_glass(start: Any) -> None:
    empty, without = picture(start(), 'still')
    env = start(PANE)
    assert np.array_equal(picture(env, 'still')[1], without)
    assert picture(env, 'still')[0][15, 32].tolist() != empty[15, 32].tolist()  # it is there
    ball = np.isfinite(picture(env, 'moving')[1]) & (picture(env, 'moving')[0][..., 1] > 100)
    assert ball.any() and np.array_equal(merged(env)[0][ball], picture(env, 'moving')[0][ball])


def test_markers_are_in_pictures_and_nowhere_else(start: Any) -> None:
    env = start()
    before, state = picture(env)[0], env.runner.world.full_state(0)
    ball = Marker(np.array([1.0, 0.0, 0.6]), 0.1, (1.0, 1.0, 0.0, 1.0))
    arrow = Marker(np.array([1.5, -0.5, 0.2]), 0.02, (1.0, 0.0, 1.0, 1.0), np.array([1.5, -0.5, 0.9]))
    marked = picture(env, 'all', ball, arrow)[0]
    (u, v), _ = POSE.project(ball.position)
    row, column = int((1 - v) / 2 * SIZE[1]), int((1 + u) / 2 * SIZE[0])
    red, green, blue, _ = marked[row, column].astype(int)
    assert min(red, green) > 100 and blue < 60
    purple = (marked[..., 0] > 100) & (marked[..., 2] > 100) & (marked[..., 1] < 80)
    rows, columns = np.nonzero(purple)
    assert np.ptp(rows) > 5 > np.ptp(columns)  # upright
    assert np.array_equal(picture(env)[0], before)
    assert np.array_equal(env.runner.world.full_state(0), state)


@pytest.mark.slow
def test_a_moving_layer_has_no_more_than_pixels_can_show(
    make_env: Any, make_task: Any, write_model: Any, opengl: None
) -> None:
    pixel = 2.0 * POSE.intrinsics.half_height / SIZE[1]  # m, at a distance of 1 m
    ray = (POSE.intrinsics.pixels(SIZE)[0][20], POSE.intrinsics.pixels(SIZE)[1][20], -1.0)
    pea = POSE.position + POSE.rotation @ np.array(ray)  # in the middle of row 20, column 20

    def seen(name: str, *balls: tuple[np.ndarray, float]) -> np.ndarray:
        bodies = ''.join(
            f'<body pos="{x} {y} {z}"><freejoint/><geom type="sphere" size="{0.5 * side * pixel}"/></body>'
            for (x, y, z), side in balls
        )
        scene = write_model(name, f'<worldbody>{bodies}</worldbody>')
        env = make_env(tasks=[make_task(scene, robots=[])], env_num=1)
        env.reset()
        return np.isfinite(picture(env, 'moving')[1])

    beside = pea + 6.0 * pixel * POSE.rotation[:, 0]
    between = beside + 0.5 * pixel * (POSE.rotation[:, 0] - POSE.rotation[:, 1])  # pixels
    assert seen('pea', (pea, 0.5))[20, 20]  # alone
    both = seen('pea_and_ball', (pea, 0.5), (between, 3.2))
    assert not both[20, 20]
    assert both[19:23, 25:29].all()  # with its corners, which a ball does not have
    large = seen('large', (beside, 4.8))
    assert not large[18, 24] and large[20, 24:29].all()
