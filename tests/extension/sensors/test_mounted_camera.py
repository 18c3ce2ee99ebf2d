"""Cameras that configs describe: known points in pictures with distortion, mounts, noise, randomization, latency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.config import RobotCfg, SimConfig
from internutopia_extension.configs.sensors import (
    CameraNoiseCfg,
    CameraRandomizationCfg,
    LensCfg,
    MountedCameraCfg,
)
from internutopia_extension.sensors.camera_optics import Lens

SIZE = (320, 240)
# Balls that glow before black: the middles of their areas in a picture are known
RADIUS = 0.3  # m
BALLS = [(4.0, 0.0, 1.0), (4.0, 1.6, 1.9), (5.0, -2.2, 0.1)]
GREY = 26  # of 255, the sky
SKY = '<texture type="skybox" builtin="flat" rgb1=".1 .1 .1" rgb2=".1 .1 .1" width="8" height="8"/>'
GLOW = '<material name="glow" emission="1" rgba="1 0 0 1"/>'
GEOMS = [f'<geom material="glow" size="{RADIUS}" pos="{x} {y} {z}" contype="0" conaffinity="0"/>' for x, y, z in BALLS]
SCENE = f'<asset>{SKY}{GLOW}</asset><worldbody>{"".join(GEOMS)}</worldbody>'
ROVER = """
<worldbody>
  <body name="base"><joint name="drive" type="slide" axis="1 0 0"/><geom type="box" size="0.05 0.05 0.05" mass="1"/>
    <body name="head" pos="0 0 0.5"><joint name="pan" axis="0 0 1"/><geom size="0.03" mass="0.1" pos="-0.1 0 0"/></body>
  </body>
</worldbody>"""
AHEAD = (0.5, 0.5, -0.5, -0.5)  # -z of the camera is x, its y is z
LENSES: dict[str, dict[str, Any]] = {
    'plain': {'focal': (200.0, 220.0), 'centre': (170.0, 110.0)},
    'brown_conrady': {
        'focal': (220.0, 220.0),
        'distortion': 'brown_conrady',
        'coefficients': (-0.25, 0.08, 0.001, -0.002, -0.01),
    },
    'kannala_brandt': {'focal': (180.0, 180.0), 'distortion': 'kannala_brandt', 'coefficients': (0.03, -0.01)},
}


@pytest.fixture
def camera(write_model, make_robot, make_task, make_env, opengl):
    """Starts envs with a rover that has a camera with these fields; returns the env and its observations."""

    def start(env_num: int = 1, **fields: Any) -> tuple[Any, Any]:
        values = {'name': 'eye', 'prim_path': 'eye', 'mount': 'env', 'translation': (0, 0, 1), 'orientation': AHEAD}
        sensor = MountedCameraCfg(**{**values, 'resolution': SIZE, **fields})
        robot: RobotCfg = make_robot(
            name='rover', prim_path='/rover', usd_path=write_model('rover', ROVER), sensors=[sensor]
        )
        scene = write_model('balls', SCENE)
        tasks = [make_task(scene_asset_path=scene, robots=[robot], max_steps=100) for _ in range(2 * env_num)]
        simulator = SimConfig(render_quality='full')  # smooth edges
        env = make_env(tasks=tasks, env_num=env_num, seed=3, simulator=simulator)
        obs, _ = env.reset()
        return env, obs

    return start


def seen(obs: Any, env_id: int = 0) -> dict[str, Any]:
    return obs[env_id]['rover']['sensors']['eye']


def middles(rgba: Any) -> np.ndarray:
    """Return the middles `(n, 2)` of red spots in a picture, from left to right."""
    light = np.minimum(rgba[..., 0].astype(float), 200) - GREY  # what glows is brighter, but for its edges
    light[light < 8] = 0
    found = []
    while light.max() > 0:
        v, u = np.unravel_index(np.argmax(light), light.shape)
        window = np.s_[max(v - 50, 0) : v + 51, max(u - 50, 0) : u + 51]
        rows, columns = np.mgrid[window]
        weights = light[window]
        found.append((np.average(columns + 0.5, weights=weights), np.average(rows + 0.5, weights=weights)))
        light[window] = 0
    return np.array(sorted(found))


def outline_middle(lens: Lens, ball: np.ndarray) -> tuple[float, float]:
    """Return the middle of the area that a ball covers in a picture; `ball`: x to the right, y down, z ahead."""
    share = 1 - RADIUS**2 / (ball @ ball)
    right = np.cross(ball, [0.0, 1.0, 0.0])
    right /= np.linalg.norm(right)
    above = np.cross(right, ball) / np.linalg.norm(ball)
    turns = np.linspace(0, 2 * np.pi, 200, endpoint=False)[:, None]
    outline = share * ball + np.sqrt(share) * RADIUS * (np.cos(turns) * right + np.sin(turns) * above)
    x, y = lens.project(outline).T
    after_x, after_y = np.roll(x, -1), np.roll(y, -1)
    areas = x * after_y - after_x * y
    return ((x + after_x) @ areas / areas.sum() / 3, (y + after_y) @ areas / areas.sum() / 3)


@pytest.mark.nightly
@pytest.mark.parametrize('kind', LENSES)
def test_known_points_are_within_a_tenth_of_a_pixel(camera, kind):
    _, obs = camera(lens=LensCfg(**LENSES[kind]), camera_params=True, depth=True, pointcloud=True)
    given = LENSES[kind]
    lens = Lens(
        SIZE,
        given['focal'],
        given.get('centre', (160.0, 120.0)),
        given.get('distortion'),
        given.get('coefficients', ()),
    )
    ahead, left, up = (np.array(BALLS) - (0, 0, 1)).T
    expected = [outline_middle(lens, ball) for ball in np.column_stack([-left, -up, ahead])]
    shown = seen(obs)
    np.testing.assert_allclose(middles(shown['rgba']), sorted(expected), atol=0.1)
    distances = np.linalg.norm(shown['pointcloud'][:, None] - np.array(BALLS), axis=-1).min(axis=1)
    assert distances == pytest.approx(RADIUS, abs=0.02)  # all points are on a ball; half a pixel is 1 cm there


@pytest.mark.slow
def test_a_camera_in_the_env_stays_and_one_that_follows_does_not_turn(camera):
    where = {
        'env': (0.0, 0.0, 2.0),
        'follow': (0.5, 0.0, 0.7),
        'link': (0.5, -0.1, 0.7),
    }  # once it has driven and turned
    for mount, expected in where.items():
        place = {'env': (0, 0, 2), 'follow': (0, 0, 0.2), 'link': (-0.1, 0, 0.2)}[mount]
        env, _ = camera(mount=mount, prim_path='head/eye', translation=place, every=1)
        robot = next(iter(env.runner.current_tasks.values())).robots['rover']
        robot.articulation.set_joint_positions(np.array([0.5, np.pi / 2]))
        position, orientation = robot.sensors['eye'].get_pose()
        assert position == pytest.approx(expected, abs=1e-5), mount
        turned = mount == 'link'
        assert (abs(np.dot(orientation, AHEAD)) > 0.999) == (not turned), mount
        env.close()


@pytest.mark.slow
def test_depth_is_clipped_rounded_and_dropped(camera):
    noise = CameraNoiseCfg(depth_step=0.5, depth_dropout=0.3)
    _, obs = camera(depth=True, noise=noise, clipping=(0.1, 4.3))
    depth = seen(obs)['depth']
    _, plain = camera(depth=True)
    clean = seen(plain)['depth']
    there, near = np.isfinite(clean), clean < 4.3
    assert set(np.unique(depth[np.isfinite(depth)])) == {3.5, 4.0}
    assert not np.isfinite(depth[there & ~near]).any()  # the ball that is farther
    assert np.isinf(depth[near]).mean() == pytest.approx(0.3, abs=0.1)


@pytest.mark.slow
def test_noise_is_that_of_the_seed_and_the_episode(camera):
    noise = CameraNoiseCfg(color=5.0, depth=0.01)
    pictures = []
    for _ in range(2):
        env, obs = camera(2, noise=noise, depth=True)
        pictures.append([seen(obs, env_id) for env_id in range(2)])
        env.close()
    for key in ('rgba', 'depth'):
        np.testing.assert_array_equal(pictures[0][0][key], pictures[1][0][key])
        assert (pictures[0][0][key] != pictures[0][1][key]).any()  # another episode
    _, plain = camera(depth=True)
    clean = seen(plain)
    sky = np.isinf(clean['depth'])
    spread = pictures[0][0]['rgba'][sky, :3].astype(float) - clean['rgba'][sky, :3]
    assert spread.std() == pytest.approx(5.0, rel=0.05)
    on = np.isfinite(clean['depth'])
    error = (pictures[0][0]['depth'][on] - clean['depth'][on]) / clean['depth'][on] ** 2
    assert error.std() == pytest.approx(0.01, rel=0.1)


@pytest.mark.slow
def test_pose_focal_length_and_exposure_are_sampled_for_each_episode(camera):
    ranges = CameraRandomizationCfg(position=0.1, angle=5.0, zoom=0.2, exposure=1.0)
    found = []
    for _ in range(2):
        env, obs = camera(2, randomization=ranges, camera_params=True)
        first = [seen(obs, env_id) for env_id in range(2)]
        obs, _ = env.reset([0])
        found.append([*first, seen(obs)])
        env.close()
    views = [np.linalg.inv(np.reshape(each['camera_params']['cameraViewTransform'], (4, 4))) for each in found[0]]
    assert len({tuple(view[3].round(6)) for view in views}) == 3  # each episode has its own
    for view in views:
        shift = view[3, :3] - (0, 0, 1)
        shift[:2] -= 5 * np.rint(shift[:2] / 5)  # the place of the env on the grid
        assert np.linalg.norm(shift) <= 0.1 * np.sqrt(3) + 1e-6
    focal = [float(each['camera_params']['cameraProjection'].reshape(4, 4)[1, 1]) for each in found[0]]
    plain = 1 / np.tan(np.radians(30))
    assert len(set(focal)) == 3 and all(0.8 * plain <= each <= 1.2 * plain for each in focal)
    assert len({int(each['rgba'][0, 0, 2]) for each in found[0]}) > 1
    for one, again in zip(*found, strict=True):
        np.testing.assert_array_equal(one['rgba'], again['rgba'])


@pytest.mark.slow
def test_a_late_picture_is_that_of_earlier_steps(camera):
    place = {'mount': 'link', 'prim_path': 'head/eye', 'camera_params': True}
    env, obs = camera(every=2, latency=3, **place)
    robot = next(iter(env.runner.current_tasks.values())).robots['rover']

    def shown(obs: Any) -> float:
        return float(np.linalg.inv(seen(obs)['camera_params']['cameraViewTransform'].reshape(4, 4))[3, 0])

    found = [shown(obs)]
    for step in range(1, 9):
        robot.articulation.set_joint_positions(np.array([0.1 * step, 0.0]))
        obs, *_ = env.step([{}])
        found.append(shown(obs))
    # pictures of steps 0, 2, 4, ...; each is seen three steps later
    assert found == pytest.approx([0, 0, 0, 0, 0, 0.2, 0.2, 0.4, 0.4], abs=0.01)


@pytest.mark.parametrize(
    ('fields', 'message'),
    [
        ({'latency': 2}, 'it needs every'),
        ({'lens': {'focal': (9, 9), 'distortion': 'kannala_brandt', 'coefficients': (0,) * 5}}, 'has 4 coefficients'),
        ({'lens': {'focal': (9, 9), 'coefficients': (0.1,)}}, 'has 0 coefficients'),
    ],
)
def test_a_config_that_cannot_be_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        MountedCameraCfg(name='eye', prim_path='eye', **fields)


@pytest.mark.slow
def test_a_lens_that_folds_over_is_an_error_that_names_the_camera(camera):
    lens = LensCfg(focal=(120.0, 120.0), distortion='brown_conrady', coefficients=(-0.4,))
    with pytest.raises(ValueError, match="camera 'eye': no ray within 80 degrees"):
        camera(lens=lens)
