"""Cameras of robots: what they see, where they are, when they look."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from internutopia.config import RobotCfg
from internutopia.core.sensor.camera import ICamera
from internutopia.core.sensor.sensor import BaseSensor
from internutopia.util.rotations import quat_rotate_inverse
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.sensors import MocapControlledCameraCfg, MountedCameraCfg, RepCameraCfg
from internutopia_extension.sensors.rep_camera import RepCamera

W, H = 32, 24
# A box on wheels, as it were: slides along x, its head looks ahead along x from a height of 0.5 m
SCOUT = """
<worldbody>
  <body name="base"><joint name="drive" type="slide" axis="1 0 0"/><geom type="box" size="0.05 0.05 0.05" mass="1"/>
    <body name="head" pos="0 0 0.5"><joint name="pan" axis="0 0 1"/><geom size="0.03" mass="0.1" pos="-0.1 0 0"/>
      <camera name="eye" pos="0.05 0 0" xyaxes="0 -1 0 0 0 1" fovy="60"/>
      <camera name="map" pos="0 0 5" projection="orthographic" fovy="4"/>
    </body>
  </body>
</worldbody>"""
EVERYTHING = {'depth': True, 'pointcloud': True, 'camera_params': True, 'landmarks': True}
KEYS = ['bounding_box_2d_tight', 'landmarks', 'rgba', 'depth', 'camera_params', 'pointcloud']
CUBE = DynamicCubeCfg(name='cube', prim_path='/cube', position=(2.0, 0.0, 0.3), scale=(0.4, 0.6, 0.6), color=(1, 0, 0))
FACE = 1.8  # m, x of the side of the cube that the camera looks at
PIXEL = 2 * np.tan(np.pi / 6) * (FACE - 0.25) / H  # m, its size at the cube
LOOKS_DOWN = (-0.70710678, 0.0, 0.0, 0.70710678)


@BaseSensor.register('SingleCamera')
class SingleCamera(RepCamera):
    """Not batched: one object for each env."""


@pytest.fixture
def scout(write_model, make_robot, opengl):
    """Makes the config of a scout with cameras."""

    def make(*sensors, **fields) -> RobotCfg:
        values = {'name': 'scout', 'prim_path': '/scout', 'usd_path': write_model('scout', SCOUT)}
        return make_robot(**{**values, 'sensors': list(sensors), **fields})

    return make


def camera_cfg(**fields) -> RepCameraCfg:
    return RepCameraCfg(**{'name': 'eye', 'prim_path': 'head/eye', 'resolution': (W, H), **fields})


def project(points, params) -> np.ndarray:
    """Pixels `(k, 2)` of points in the world frame, by the documented meaning of the parameters."""
    view = np.reshape(params['cameraViewTransform'], (4, 4))
    x, y, z = (np.c_[points, np.ones(len(points))] @ view)[:, :3].T
    u, v, w = RepCamera.get_intrinsic_matrix(params) @ [x, -y, -z]
    return np.stack([u / w, v / w], axis=-1)


@pytest.mark.parametrize('type_name', ['RepCamera', 'SingleCamera'])
def test_a_known_box(make_env, make_task, scout, type_name):
    robot = scout(camera_cfg(type=type_name, **EVERYTHING), position=(0.2, 0.0, 0.0))
    env = make_env(tasks=[make_task('floor', robots=[robot], objects=[CUBE])] * 2, env_num=2)
    obs, _ = env.reset()
    for env_id in range(2):
        data = obs[env_id]['scout']['sensors']['eye']
        assert list(data) == KEYS and obs[env_id]['scout']['render'] is True
        assert data['rgba'].shape == (H, W, 4) and data['rgba'].dtype == np.uint8
        assert data['depth'].shape == (H, W) and data['depth'].dtype == np.float32
        assert data['depth'][H // 2, W // 2] == pytest.approx(FACE - 0.25, abs=1e-3)

        points = data['pointcloud']  # in the env frame: the same numbers in every env
        cube = points[(points[:, 2] > 0.01) & (points[:, 0] < 2.5)]
        assert len(cube) > 20
        np.testing.assert_allclose(cube[:, 0], FACE, atol=2e-3)
        assert np.abs(cube[:, 1]).max() <= 0.3 and 0.6 - PIXEL < cube[:, 2].max() <= 0.6
        floor = points[(points[:, 2] < 0.01) & (points[:, 0] < 5)]
        assert len(floor) > 20 and np.abs(floor[:, 2]).max() < 0.02

        corners = np.array([[FACE, y, z] for y in (0.3, -0.3) for z in (0.6, 0.0)])
        corners += env.runner.world.env_origins[env_id]
        pixels = project(corners, data['camera_params'])
        (row,) = data['bounding_box_2d_tight']['data']
        box = [row['x_min'], row['y_min'], row['x_max'] + 1, row['y_max'] + 1]
        np.testing.assert_allclose(box, [*pixels.min(axis=0), *pixels.max(axis=0)], atol=1.0)
        assert data['bounding_box_2d_tight']['info']['idToLabels'][row['semanticId']]['class'] == 'cube'
        assert data['landmarks'] == ['cube']
        red = (data['rgba'][..., 0] > 2.0 * data['rgba'][..., 1]).nonzero()
        assert (red[1].min(), red[0].min(), red[1].max(), red[0].max()) == tuple(row.tolist()[1:5])


def test_what_is_not_asked_for_is_not_there(make_env, make_task, scout):
    cameras = [camera_cfg(), camera_cfg(name='depth', rgba=False, depth=True), camera_cfg(name='off', enable=False)]
    env = make_env(tasks=[make_task('floor', robots=[scout(*cameras)])], env_num=1)
    (obs,), _ = env.reset()
    assert {name: list(data) for name, data in obs['scout']['sensors'].items()} == {'eye': ['rgba'], 'depth': ['depth']}


def test_default_resolution(make_env, make_task, scout):
    env = make_env(tasks=[make_task('floor', robots=[scout(camera_cfg(resolution=None))])], env_num=1)
    (obs,), _ = env.reset()
    assert obs['scout']['sensors']['eye']['rgba'].shape == (64, 64, 4)


def test_an_orthographic_camera_measures_heights(make_env, make_task, scout):
    robot = scout(camera_cfg(prim_path='head/map', depth=True, pointcloud=True, resolution=(40, 40)))
    cube = CUBE.update(position=(1.0, 0.5, 0.3))
    env = make_env(tasks=[make_task('floor', robots=[robot], objects=[cube])], env_num=1)
    (obs,), _ = env.reset()
    points = obs['scout']['sensors']['eye']['pointcloud']
    assert len(points) == 1600 and np.abs(points[:, :2]).max() == pytest.approx(1.95, abs=1e-3)  # 4 m by 4 m
    on_top = (np.abs(points[:, :2] - [1.0, 0.5]) < np.array([0.2, 0.3]) - 0.05).all(axis=1)
    np.testing.assert_allclose(points[on_top, 2], 0.6, atol=2e-3)


@pytest.mark.parametrize('type_name', ['RepCamera', 'SingleCamera'])
def test_rendering_interval(make_env, make_task, scout, type_name):
    """The picture in the observation changes when a frame is due, that of the sensor whenever it is asked for."""
    task = make_task('floor', robots=[scout(camera_cfg(type=type_name, depth=True))], objects=[CUBE], max_steps=99)
    env = make_env(tasks=[task] * 2, env_num=2, sim={'rendering_interval': 2})
    obs, _ = env.reset()
    seen = [obs[0]['scout']['sensors']['eye']['depth']]
    robot = env.runner.envs[0].task.robots['scout']
    for step in range(1, 7):
        robot.articulation.set_joint_positions([0.1 * step, 0.0])
        now = float(robot.articulation.get_joint_positions()[0])
        obs = env.step([None, None])[0]
        now = float(robot.articulation.get_joint_positions()[0])
        picture = obs[0]['scout']['sensors']['eye']['depth']
        assert obs[0]['scout']['render'] is (step % 3 == 0)
        if step % 3 == 0:
            assert picture[H // 2, W // 2] == pytest.approx(FACE - 0.05 - now, abs=2e-3)
        else:
            assert (picture == seen[-1]).all()
        assert robot.sensors['eye'].get_data()['depth'][H // 2, W // 2] == pytest.approx(FACE - 0.05 - now, abs=2e-3)
        seen.append(picture.copy())
        picture[:] = 0.0  # the caller's own
    now = env.get_observations()[0]['scout']
    assert now['render'] is True and (now['sensors']['eye']['depth'] == seen[-1]).all()


def test_moved_cameras_stay_on_their_link_until_the_episode_ends(make_env, make_task, scout):
    env = make_env(tasks=[make_task('floor', robots=[scout(camera_cfg(depth=True))])] * 3, env_num=2)
    env.reset()
    robots = [env.runner.envs[i].task.robots['scout'] for i in range(2)]
    cameras = [robot.sensors['eye'] for robot in robots]
    before = cameras[0].get_pose()
    np.testing.assert_allclose(before[0], [0.05, 0.0, 0.5], atol=1e-6)
    np.testing.assert_allclose(quat_rotate_inverse(before[1], np.array([1.0, 0, 0])), [0, 0, -1], atol=1e-6)
    offset = env.runner.world.env_origins[1]
    cameras[1].set_world_pose([offset[0] + 1.0, offset[1] - 0.5, 3.0], list(LOOKS_DOWN))
    np.testing.assert_allclose(cameras[1].get_world_pose()[0], offset + [1.0, -0.5, 3.0], atol=1e-5)
    np.testing.assert_allclose(cameras[1].get_pose()[0], [1.0, -0.5, 3.0], atol=1e-5)
    np.testing.assert_allclose(cameras[1].get_data()['depth'], 3.0, atol=5e-3)  # nothing but floor
    np.testing.assert_array_equal(cameras[0].get_pose()[0], before[0])  # the other env's

    robots[1].articulation.set_joint_positions([0.5, 0.0])
    np.testing.assert_allclose(cameras[1].get_pose()[0], [1.5, -0.5, 3.0], atol=1e-5)
    env.reset([1])
    fresh = env.runner.envs[1].task.robots['scout'].sensors['eye']
    np.testing.assert_allclose(fresh.get_pose()[0], before[0], atol=1e-6)


def test_the_reset_of_one_env_leaves_the_pictures_of_others(make_env, make_task, scout):
    tasks = [
        make_task(scene, robots=[scout(camera_cfg(depth=True))], objects=[CUBE.update(position=(x, 0.0, 0.3))])
        for scene, x in (('floor', 2.0), ('crates', 1.2), ('floor', 3.0))
    ]
    env = make_env(tasks=tasks, env_num=2, sim={'rendering_interval': 99})
    obs, _ = env.reset()
    pictures = [o['scout']['sensors']['eye']['depth'] for o in obs]
    assert [p[H // 2, W // 2] for p in pictures] == pytest.approx([1.75, 0.95], abs=2e-3)
    assert env.step([None, None])[0][0]['scout']['render'] is False
    (first,), _ = env.reset([0])
    assert first['scout']['sensors']['eye']['depth'][H // 2, W // 2] == pytest.approx(2.75, abs=2e-3)
    other = env.step([None, None])[0][1]['scout']
    assert other['render'] is False and (other['sensors']['eye']['depth'] == pictures[1]).all()


def test_wrong_cameras_are_named_before_anything_starts(make_env, make_task, scout):
    tasks = [make_task(robots=[scout(camera_cfg())]), make_task(robots=[scout(camera_cfg(prim_path='head/eyes'))])]
    env = make_env(tasks=tasks, env_num=1)
    env.reset()
    running = env.get_observations()[0]['scout']['joint_positions']
    with pytest.raises(ValueError, match=r"'scout', sensor 'eye': there is no camera at 'head/eyes'.*'head/eye'"):
        env.reset()
    assert (env.get_observations()[0]['scout']['joint_positions'] == running).all()
    with pytest.raises(ValueError, match='a camera needs a prim_path'):
        make_env(tasks=[make_task(robots=[scout(camera_cfg(prim_path=None))])], env_num=1).reset()


def test_icamera_reads_what_is_there_now(make_env, make_task, scout):
    env = make_env(tasks=[make_task('floor', robots=[scout()], objects=[CUBE])], env_num=1)
    env.reset()
    camera = ICamera.create(
        prim_path='/World/env_0/robots/scout/head/eye',
        distance_to_image_plane=True,
        bounding_box_2d_tight=True,
        camera_params=True,
        resolution=(W, H),
    )
    rgba, depth, boxes = camera.get_rgba(), camera.get_distance_to_image_plane(), camera.get_bounding_box_2d_tight()
    params = camera.get_camera_params()
    assert rgba is not None and depth is not None and boxes is not None and params is not None
    assert rgba.shape == (H, W, 4) and depth[H // 2, W // 2] == pytest.approx(FACE - 0.05, abs=2e-3)
    assert len(boxes['data']) == 1 and params['renderProductResolution'].tolist() == [W, H]
    depth[:] = 0.0  # the caller's own
    env.runner.get_obj('cube').set_pose([1.5, 0.0, 0.3])
    depth = camera.get_distance_to_image_plane()
    assert depth is not None and depth[H // 2, W // 2] == pytest.approx(FACE - 0.55, abs=2e-3)
    camera.set_local_pose([0.05, 0.0, 0.4])
    np.testing.assert_allclose(camera.get_pose()[0], [0.05, 0.0, 0.9], atol=1e-6)
    np.testing.assert_allclose(camera.get_local_pose()[0], [0.05, 0.0, 0.4], atol=1e-6)

    plain = ICamera.create(prim_path='/World/env_0/robots/scout/head/eye', position=(0, 0, 2), orientation=LOOKS_DOWN)
    rgba = plain.get_rgba()
    assert rgba is not None and rgba.shape == (64, 64, 4) and plain.get_pose()[0].tolist() == [0, 0, 2]
    assert plain.get_distance_to_image_plane() is None and plain.get_bounding_box_2d_tight() is None
    assert plain.get_camera_params() is None
    with pytest.raises(ValueError, match='width and height must be positive'):
        ICamera.create(prim_path='/World/env_0/robots/scout/head/eye', resolution=(0, 4))


def test_a_mocap_camera_is_made_where_its_config_says(make_env, make_task, scout):
    held = MocapControlledCameraCfg(
        name='held', prim_path='head/held', translation=(0.0, 0.0, 1.5), orientation=LOOKS_DOWN, resolution=(W, H)
    )
    env = make_env(tasks=[make_task('floor', robots=[scout(held)], objects=[CUBE])], env_num=1)
    (obs,), _ = env.reset()
    assert list(obs['scout']['sensors']['held']) == ['bounding_box_2d_tight', 'rgba']
    sensor = env.runner.envs[0].task.robots['scout'].sensors['held']
    np.testing.assert_allclose(sensor.get_pose()[0], [0.0, 0.0, 2.0], atol=1e-6)
    assert not len(sensor.get_data()['bounding_box_2d_tight']['data'])
    sensor.set_pose([2.0, 0.0, 3.0])
    assert len(sensor.get_data()['bounding_box_2d_tight']['data']) == 1


RUNS = """
import ctypes, gc, os, sys
import psutil
import internutopia_extension
from internutopia.config import Config
from internutopia.core.vec_env import Env

internutopia_extension.import_extensions()
config = Config.model_validate_json(sys.argv[1])
for _ in range(6):
    env = Env(config)
    env.reset()
    env.close()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # with many threads, what was freed stays in the arenas of each
    print(psutil.Process().memory_full_info().uss, len(os.listdir('/proc/self/task')))
"""


def test_a_mounted_camera_is_made_where_its_config_says(make_env, make_task, scout):
    place = {'name': 'top', 'prim_path': 'head/top', 'translation': (2.0, 0.0, 2.0), 'orientation': LOOKS_DOWN}
    mounted = MountedCameraCfg(**place, fovy=30.0, depth=True, camera_params=True)
    obs, _ = make_env(tasks=[make_task(robots=[scout(mounted)], objects=[CUBE])]).reset()
    seen = obs[0]['scout']['sensors']['top']
    assert seen['depth'].min() == pytest.approx(2.5 - 0.6, abs=1e-3)  # to the top of the cube
    view = np.reshape(seen['camera_params']['cameraViewTransform'], (4, 4))
    assert np.linalg.inv(view)[3, :3] == pytest.approx([2.0, 0.0, 2.5], abs=1e-4)


def test_a_mounted_camera_takes_pictures_in_certain_steps_of_each_episode(make_env, make_task, scout):
    place = {'name': 'top', 'prim_path': 'head/top', 'translation': (2.0, 0.0, 2.0), 'orientation': LOOKS_DOWN}
    mounted = MountedCameraCfg(**place, depth=True, every=3)
    env = make_env(
        tasks=[make_task(robots=[scout(mounted)], objects=[CUBE], max_steps=100) for _ in range(4)], env_num=2
    )

    def depths() -> list[float]:
        return [float(each['scout']['sensors']['top']['depth'].min()) for each in obs]

    obs, _ = env.reset()
    shown = [depths()]
    for step in range(1, 8):
        if step == 5:  # its episode begins anew, and its pictures with it
            env.reset([0])
        obs, *_ = env.step([{}, {}])  # the cube falls: a new picture shows it elsewhere
        shown.append(depths())
    new = np.diff(shown, axis=0) != 0
    assert new[:, 1].tolist() == [False, False, True, False, False, True, False]
    assert new[:, 0].tolist() == [False, False, True, False, True, False, True]


@pytest.mark.nightly
def test_envs_with_cameras_leave_nothing_behind(make_config, make_task, scout):
    """In a process of their own: what other tests leave to the allocator and to drivers is not theirs."""
    robot = scout(camera_cfg(depth=True), type='GenericRobot', controllers=[])
    task = make_task('floor', type='SingleInferenceTask', robots=[robot])
    config = make_config([task], 1).model_dump_json()
    output = subprocess.run([sys.executable, '-c', RUNS, config], check=True, capture_output=True, text=True).stdout
    memory, threads = np.array([line.split() for line in output.splitlines()], int).T
    assert np.diff(memory)[1:].min() < 1 << 20  # what leaks grows every time
    assert threads[1] == threads[-1]
