"""Pictures that are rendered when they are read: how many, and of which moment."""

from __future__ import annotations

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from markers import slow_but
from toys import ToyRobot

from internutopia.core.robot.robot import BaseRobot
from internutopia.core.sensor.sensor import BaseSensor
from internutopia.rendering.renderer import RendererPool
from internutopia_extension.configs.sensors import CameraNoiseCfg, CameraRandomizationCfg, MountedCameraCfg
from internutopia_extension.sensors.rep_camera import RepCamera

CART = """
<worldbody>
  <body name="base"><joint name="drive" type="slide" axis="1 0 0"/><geom type="box" size="0.05 0.05 0.05" mass="1"/>
    <camera name="eye" pos="0.1 0 0.5" xyaxes="0 -1 0 0 0 1" fovy="60"/>
    <body pos="1 0.2 0.5"><joint name="flag" type="slide" axis="0 1 0"/><geom size="0.1" mass="0.1"/></body>
  </body>
</worldbody>"""
SCENE = '<worldbody><light pos="0 0 3"/><geom type="box" size="0.1 2 2" pos="3.1 0 0" rgba="1 0 0 1"/></worldbody>'
EVERYTHING = {'depth': True, 'camera_params': True, 'pointcloud': True, 'instance_segmentation': True}
CAMERAS: dict[str, dict[str, Any]] = {
    'batched': {'type': 'RepCamera', 'prim_path': 'base/eye'},
    'one env': {'type': 'LazyCamera', 'prim_path': 'base/eye'},
    'noisy': {
        'translation': (0.1, 0, 0.5),
        'orientation': (0.5, 0.5, -0.5, -0.5),
        'prim_path': 'base/own',
        'noise': CameraNoiseCfg(color=3.0, depth=0.01, depth_dropout=0.05),
        'randomization': CameraRandomizationCfg(position=0.01, exposure=0.5),
        'every': 1,
    },
    'late': {
        'translation': (0.1, 0, 0.5),
        'orientation': (0.5, 0.5, -0.5, -0.5),
        'prim_path': 'base/own',
        'every': 2,
        'latency': 3,
    },
}


@BaseSensor.register('LazyCamera')
class LazyCamera(RepCamera):
    """Not batched: one object for each env."""


@BaseRobot.register('OldCart')
class OldCart(ToyRobot):
    """Reads its cameras in each observation, as robots of 2.x do."""

    def get_obs(self) -> Any:
        obs = super().get_obs()
        obs['sensors'] = {name: sensor.get_data() for name, sensor in self.sensors.items()}
        return obs


@pytest.fixture
def rendered(monkeypatch) -> list[int]:
    """The env of each picture that is rendered."""
    env_ids: list[int] = []
    render = RendererPool.render

    def count(self: Any, requests: Any, *args: Any) -> None:
        env_ids.extend(request.env_id for request in requests)
        render(self, requests, *args)

    monkeypatch.setattr(RendererPool, 'render', count)
    return env_ids


@pytest.fixture
def start(make_env, make_task, make_robot, write_model, opengl):
    """Starts envs of a cart in front of a wall, 3 m away at first; the fields are those of its camera."""

    def make(env_num: int = 2, interval: int = 0, compat: str = '3.x', **fields: Any) -> Any:
        values = {'name': 'eye', 'prim_path': 'base/eye', 'resolution': (16, 12), **EVERYTHING}
        camera = MountedCameraCfg(**{**values, **fields})
        kind, path = 'OldCart' if compat == '2.x' else 'ToyRobot', write_model('cart', CART)
        cart = make_robot(type=kind, name='cart', prim_path='/cart', usd_path=path, sensors=[camera])
        tasks = [make_task(write_model('wall', SCENE), robots=[cart], max_steps=99) for _ in range(2 * env_num)]
        env = make_env(tasks=tasks, env_num=env_num, seed=4, sim={'rendering_interval': interval}, compat=compat)
        return env, env.reset()[0]

    return make


def drive(env: Any, steps: int) -> list[Any]:
    """Move the cart of each env and its flag 0.1 m in each step; returns the observations of all steps."""
    observations = []
    for _ in range(steps):
        for slot in env.runner.envs:
            cart = slot.task.robots['cart'].articulation
            cart.set_joint_positions(cart.get_joint_positions() + 0.1)
        observations.append(env.step([None] * env.env_num)[0])
    return observations


def seen(observations: Any, env_id: int = 0) -> Any:
    return observations[env_id]['cart']['sensors']['eye']


def assert_same(one: Any, other: Any) -> None:
    assert list(one) == list(other)
    for key, value in one.items():
        if isinstance(value, dict):
            assert_same(value, other[key])
        else:
            np.testing.assert_array_equal(value, other[key])


@pytest.mark.parametrize('kind', slow_but('batched', of=CAMERAS))
def test_what_is_read_later_is_what_was_there(start, rendered, kind):
    """Bit for bit what is read at once, also after the env has a new episode, and after it was closed."""
    env, first = start(**CAMERAS[kind])
    at_once = [copy.deepcopy(dict(seen(obs))) for obs in (first, *(drive(env, 1)[0] for _ in range(4)))]
    assert rendered
    env, first = start(**CAMERAS[kind])
    rendered.clear()
    observations = [first, *drive(env, 4)]
    assert observations[3][0]['cart']['joint_positions'].shape == (2,) and not rendered
    env.reset([0])
    drive(env, 2)
    assert not rendered
    for obs, expected in zip(observations[:3], at_once, strict=False):
        assert_same(dict(seen(obs)), expected)
    env.close()
    for obs, expected in zip(observations[3:], at_once[3:], strict=True):
        assert_same(dict(seen(obs)), expected)
    if kind == 'batched':
        depths = [obs['depth'][6, 8] for obs in at_once]
        assert depths == pytest.approx([2.9, 2.8, 2.7, 2.6, 2.5], abs=0.01)


def test_only_what_is_read_is_rendered(start, rendered):
    env, obs = start(3, interval=1, type='RepCamera')
    drive(env, 5)
    assert not rendered
    picture = seen(obs, 1)
    assert not rendered
    again = copy.deepcopy(picture), pickle.loads(pickle.dumps(picture)), picture.copy()
    assert rendered == [1]
    assert [type(each) for each in again[1:]] == [dict, dict]
    for each in again:
        assert_same(each, picture)
    rendered.clear()
    observations = drive(env, 4)
    depths = [float(seen(obs, 1)['depth'][6, 8]) for obs in observations]
    assert rendered == [1, 1]  # a frame is due in every other step, and repeated in between
    assert depths == pytest.approx([2.3, 2.3, 2.1, 2.1], abs=0.01)


def test_those_that_were_read_are_rendered_together(start, rendered):
    """Hardware renders envs in parallel; an env that is not read any more is not rendered any more."""
    env, _ = start(3, type='RepCamera')
    for _ in range(2):
        (obs,) = drive(env, 1)
        for env_id in (0, 2):
            seen(obs, env_id)['rgba']
    assert rendered == [0, 2, 0, 2]
    rendered.clear()
    for _ in range(3):
        (obs,) = drive(env, 1)
        seen(obs, 2)['rgba']
    assert rendered == [0, 2, 2, 2]
    assert env.runner.world.picture_seconds > 0


def test_threads_that_read_at_once_get_what_is_rendered_once(start, rendered):
    interval = sys.getswitchinterval()
    env, _ = start(2, type='RepCamera')
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(6) as pool:
            for step in range(5):
                (obs,) = drive(env, 1)
                rendered.clear()
                depths = list(pool.map(lambda env_id, obs=obs: seen(obs, env_id)['depth'][6, 8], [0, 1] * 3))
                assert sorted(rendered) == [0, 1]
                assert depths == pytest.approx([2.8 - 0.1 * step] * 6, abs=0.01)
    finally:
        sys.setswitchinterval(interval)


def test_a_picture_of_the_env_as_it_is_belongs_to_its_moment(start, rendered):
    env, _ = start(type='RepCamera')
    sensor = env.runner.envs[0].task.robots['cart'].sensors['eye']
    before = sensor.get_data()
    drive(env, 5)
    assert not rendered
    assert before['depth'][6, 8] == pytest.approx(2.9, abs=0.01)
    assert sensor.get_data()['depth'][6, 8] == pytest.approx(2.4, abs=0.01)
    before['depth'][:] = 0.0  # the caller's own
    assert sensor.get_data()['depth'][6, 8] == pytest.approx(2.4, abs=0.01)
    assert rendered == [0, 0]


def test_an_ended_env_repeats_what_nobody_has_read(start, rendered):
    env, _ = start(1, type='RepCamera')
    drive(env, 99)
    obs = [env.step([None])[0] for _ in range(3)][-1]
    assert not rendered
    assert seen(obs)['depth'].shape == (12, 16) and rendered == [0]


def test_a_robot_that_reads_its_cameras_in_each_observation_renders_nothing(start, rendered):
    env, _ = start(compat='2.x')
    observations = drive(env, 3)
    assert not rendered
    assert [float(seen(obs)['depth'][6, 8]) for obs in observations] == pytest.approx([2.8, 2.7, 2.6], abs=0.01)
    assert rendered == [0, 0, 0]
