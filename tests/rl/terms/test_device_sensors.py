"""What a learner sees through cameras and sensors on a device: the numbers of the host, and nothing waits for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from captured import capture_rules
from stand_in_gpu import on_a_gpu
from warp_device import DEVICE

from internutopia.config.learning import LearningCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.sensor.sensor import NormalNoise
from internutopia.engines.warp.cameras import RayTracer
from internutopia.rl import VectorEnv
from internutopia.util.arrays import HostArrays, to_host
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.sensors import (
    CollisionSensorCfg,
    ContactSensorCfg,
    GPSCompassCfg,
    IMUCfg,
    JointForceSensorCfg,
    LidarCfg,
    LocalMapCfg,
    RepCameraCfg,
)
from internutopia_extension.robots.generic import GenericRobot

torch = pytest.importorskip('torch')
wp = pytest.importorskip('warp')

ENVS = 3
W, H = 8, 6
RAYS = 16
TOLERANCE = 1e-4  # where the host computes in double precision
# stands on the floor against a cube, turns an arm, and looks over the cube
ROVER = """
<worldbody>
  <body name="rover" pos="0 0 0.049"><freejoint/><geom type="box" size="0.1 0.1 0.05" mass="1"/>
    <camera name="eye" pos="0.1 0 0.1" xyaxes="0 -1 0 0 0 1" fovy="60"/>
    <body name="arm" pos="0 0 0.08">
      <joint name="turn" axis="0 0 1"/><geom type="box" size="0.1 0.02 0.02" pos="0.1 0 0" mass="0.5"/>
    </body>
  </body>
</worldbody>"""
CUBE = DynamicCubeCfg(name='cube', prim_path='/cube', position=(0.298, 0.0, 0.099), scale=(0.4, 0.4, 0.2))
SENSORS = [
    RepCameraCfg(name='eye', prim_path='rover/eye', resolution=(W, H)),
    IMUCfg(name='imu', translation=(0.1, 0.0, 0.0)),
    ContactSensorCfg(name='touch', prim_path='rover'),
    CollisionSensorCfg(name='bump', step_height=0.0),
    CollisionSensorCfg(name='wall', step_height=0.05),
    JointForceSensorCfg(name='forces', wrenches_at=['turn']),
    GPSCompassCfg(name='place'),
    LocalMapCfg(name='map', size=1.0, resolution=0.1),
    LidarCfg(
        name='lidar',  # looks down, so that all rays hit the floor, the cube or the arm
        prim_path='rover',
        translation=(-0.2, 0.0, 0.3),
        orientation=(0.9, 0.0, 0.4359, 0.0),
        horizontal_fov=1.0,
        horizontal_rays=RAYS,
        exclude_robot=False,
        pointcloud=True,
    ),
]
READINGS = {
    'imu': ('linear_acceleration', 'angular_velocity', 'orientation'),
    'touch': ('force', 'in_contact'),
    'bump': ('collided',),
    'wall': ('collided',),
    'forces': ('efforts', 'forces', 'torques'),
    'place': ('gps', 'compass'),
    'map': ('occupancy',),
    'lidar': ('ranges', 'pointcloud'),
}
PICTURES: list[dict[str, Any]] = [
    {'data': 'rgb'},
    {'data': 'depth'},
    {'data': 'semantic_segmentation'},
    {'data': 'semantic_segmentation', 'categories': ['cube']},
    {'data': 'instance_segmentation'},
]
TERMS = [
    *({'term': 'camera', 'params': {'name': 'eye', **params}} for params in PICTURES),
    *({'term': 'sensor', 'params': {'name': name, 'key': key}} for name, keys in READINGS.items() for key in keys),
]


@BaseRobot.register('FootedRover')
class FootedRover(GenericRobot):
    """Steps on what is low: the cube is not, for one of its sensors."""

    batched = True
    feet = ('rover',)


@pytest.fixture
def make_rovers(make_config: Any, make_task: Any, write_model: Any) -> Callable[..., Any]:
    """Makes rovers whose episodes are cut after 5 steps; `arrays` says of which kind their arrays are."""
    model = write_model('rover', ROVER)

    def make(
        arrays: Any, sensors: Any = SENSORS, observations: Any = TERMS, env_num: int = ENVS, seed: int = 0, **terms: Any
    ) -> Any:
        robot = GenericRobotCfg(
            type='FootedRover',
            name='rover',
            usd_path=model,
            stiffness=10.0,
            damping=1.0,
            controllers=[JointControllerCfg(name='joints', joint_names=['turn'])],
            sensors=sensors,
        )
        task = make_task('floor', robots=[robot], objects=[CUBE], type='SingleInferenceTask', max_episode_steps=5)
        sim = {'substeps': 4, 'backend': 'mujoco_warp', 'device': DEVICE, 'renderer': 'raytrace'}
        config = make_config(tasks=[task], env_num=env_num, sim=sim, episode_order='cycle', seed=seed)
        terms |= {'action': {'controller': 'joints'}, 'observations': observations}
        learning = LearningCfg.model_validate(terms)
        return VectorEnv(config, learning, autoreset_mode='SameStep', arrays=arrays)

    return make


def turns(step: int) -> np.ndarray:
    """Actions `(n, 1)`: the arms are told to turn in different directions."""
    return np.array([[0.5], [-1.0], [1.5]], np.float32) * (1.0 + 0.1 * step)


@pytest.mark.nightly
def test_every_sensor_gives_the_numbers_of_the_host_and_waits_for_nothing(make_rovers: Callable[..., Any]) -> None:
    """Through restarts of one env and of all."""
    ready, steps = 3, 8  # steps after which all is made that is made once, and in all

    def actions(envs: Any, step: int) -> Any:
        if step == ready - 1:
            envs.core.state.steps[1] = 10**6
        return turns(step)

    with closing(make_rovers('numpy')) as host:
        host.reset(seed=0)
        wanted = np.stack([host.step(actions(host, step))[0].copy() for step in range(steps)])
    with on_a_gpu() as no_waiting, closing(make_rovers('torch')) as envs:
        envs.reset(seed=0)
        told = [torch.from_numpy(turns(step)).to(envs.device) for step in range(steps)]
        got = [(actions(envs, step), envs.step(told[step])[0].clone())[1] for step in range(ready)]
        with no_waiting(), capture_rules() as checked:
            got += [envs.step(told[step])[0].clone() for step in range(ready, steps)]
        assert {'step', 'reset', 'kinematics', 'render', 'rays'} <= {key[0] for key in checked}
        np.testing.assert_allclose(np.stack([to_host(obs) for obs in got]), wanted, rtol=TOLERANCE, atol=TOLERANCE)
    changing = np.ptp(wanted, axis=0).any(axis=0)
    ends = np.cumsum([W * H * 3, *[W * H] * 4, 3, 3, 4, 3, 1, 1, 1, 1, 3, 3, 2, 1, 100, RAYS, 3 * RAYS])
    assert ends[-1] == wanted.shape[-1]
    seen = [changing[start:end].any() for start, end in zip([0, *ends], ends, strict=False)]
    assert sum(seen) >= len(seen) - 2, 'nothing to compare'


@pytest.mark.slow
def test_sensors_forget_episodes_that_the_device_ends(make_rovers: Callable[..., Any]) -> None:
    """A GPS counts from where the new episode starts, which is elsewhere."""
    gps = [{'term': 'sensor', 'params': {'name': 'place', 'key': 'gps'}}]
    elsewhere = [{'term': 'base_pose', 'params': {'x': [-2.0, -1.0], 'yaw': [-3.0, 3.0]}}]
    with closing(make_rovers('torch', [GPSCompassCfg(name='place')], gps, randomizations=elsewhere)) as envs:
        envs.reset(seed=0)
        for _ in range(2):
            for step in range(4):
                envs.step(torch.from_numpy(turns(step)))
            before = to_host(envs.core.state.base_position)[:, 0].copy()
            assert not envs.step(torch.from_numpy(turns(4)))[0].any()
            assert np.abs(to_host(envs.core.state.base_position)[:, 0] - before).min() > 1e-3


@pytest.mark.nightly
def test_noise_of_a_device(make_rovers: Callable[..., Any]) -> None:
    """That of the host, to the bit of its random numbers; another one in each env, step and episode."""

    def run(seed: int) -> np.ndarray:
        imu, key = IMUCfg(name='imu', acceleration_noise=2.0), 'linear_acceleration'
        terms = [{'term': 'sensor', 'params': {'name': 'imu', 'key': key}}]
        with closing(make_rovers('torch', [imu], terms, env_num=40, seed=seed)) as envs:
            envs.reset()
            still = torch.zeros((40, 1), device=envs.device)
            rows = [to_host(envs.step(still)[0]).copy() for _ in range(10)]
            sensor, world = envs.core.state.robot.sensors['imu'], envs.core.runner.world
            np.testing.assert_array_equal(to_host(sensor.get_data()[key]), rows[-1])  # as often as it is read
            keys, times = to_host(world.device_noise_keys).view(np.uint64), to_host(world.times)
            host: Any = SimpleNamespace(arrays=HostArrays(), noise_keys=keys, times=times)
            got, wanted = (
                to_host(NormalNoise(each, 'test', 1.0).add_to(each.arrays.zeros((40, 5)))) for each in (world, host)
            )
            np.testing.assert_allclose(got, wanted, atol=1e-6)
        return np.stack(rows)

    first, again, other = run(1), run(1), run(2)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    first, later = first[1:5], first[6:10]  # two episodes, the second of which the device started
    assert (first != later).all()
    differences = (first - later) / np.sqrt(2.0)  # what is measured is the same
    assert abs(differences.mean()) < 0.3 and differences.std() == pytest.approx(2.0, rel=0.15)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('mistake', 'message'),
    [
        (lambda tracer: wp.zeros(3, dtype=float, device='cpu'), 'allocates in what is captured'),
        (lambda tracer: tracer._envs.numpy(), 'a read of the host in what is captured'),
        (lambda tracer: tracer._buffers.tensor('rgba').zero_(), 'torch computes'),
    ],
    ids=['allocates', 'reads', 'torch'],
)
def test_a_mistake_in_what_takes_pictures_is_found(
    make_rovers: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, mistake: Callable[[Any], Any], message: str
) -> None:
    take = RayTracer.render

    def wrong(tracer: RayTracer, *args: Any) -> None:
        take(tracer, *args)
        mistake(tracer)

    with closing(make_rovers('torch', observations=TERMS[:1])) as envs:
        envs.reset(seed=0)
        monkeypatch.setattr(RayTracer, 'render', wrong)
        with capture_rules(), pytest.raises(AssertionError, match=message):
            envs.step(torch.from_numpy(turns(0)))
