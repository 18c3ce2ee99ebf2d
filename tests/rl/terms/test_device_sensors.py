"""What a learner sees through cameras and sensors on a device: the numbers of the host, and nothing waits for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
import torch
from captured import capture_rules
from stand_in_gpu import on_a_gpu
from warp_device import DEVICE

from internutopia.core.config.learning import LearningCfg
from internutopia.core.util.arrays import to_host
from internutopia.rl import VectorEnv
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.sensors import (
    CollisionSensorCfg,
    ContactSensorCfg,
    GPSCompassCfg,
    IMUCfg,
    JointForceSensorCfg,
    LocalMapCfg,
    RepCameraCfg,
)

ENVS = 3
W, H = 8, 6
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
    CollisionSensorCfg(name='bump'),
    JointForceSensorCfg(name='forces', wrenches_at=['turn']),
    GPSCompassCfg(name='place'),
    LocalMapCfg(name='map', size=1.0, resolution=0.1),
]
NOISE = 0.5
NOISY = [IMUCfg(name='imu', acceleration_noise=NOISE)]
READINGS = {
    'imu': ('linear_acceleration', 'angular_velocity', 'orientation'),
    'touch': ('force', 'in_contact'),
    'bump': ('collided',),
    'forces': ('efforts', 'forces', 'torques'),
    'place': ('gps', 'compass'),
    'map': ('occupancy',),
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
ACCELERATION = [{'term': 'sensor', 'params': {'name': 'imu', 'key': 'linear_acceleration'}}]


@pytest.fixture
def make_rovers(make_config: Any, make_task: Any, write_model: Any) -> Iterator[Callable[..., Any]]:
    """Makes rovers whose episodes are cut after 5 steps; `arrays` says of which kind their arrays are."""
    model = write_model('rover', ROVER)

    def make(arrays: Any, sensors: Any = SENSORS, observations: Any = TERMS, seed: int = 0) -> Any:
        robot = GenericRobotCfg(
            name='rover',
            usd_path=model,
            stiffness=10.0,
            damping=1.0,
            controllers=[JointControllerCfg(name='joints', joint_names=['turn'])],
            sensors=sensors,
        )
        task = make_task('floor', robots=[robot], objects=[CUBE], type='SingleInferenceTask', max_episode_steps=5)
        sim = {'substeps': 4, 'backend': 'mujoco_warp', 'device': DEVICE, 'renderer': 'raytrace'}
        config = make_config(tasks=[task], env_num=ENVS, sim=sim, episode_order='cycle', seed=seed)
        learning = LearningCfg.model_validate({'action': {'controller': 'joints'}, 'observations': observations})
        return VectorEnv(config, learning, autoreset_mode='SameStep', arrays=arrays)

    yield make


def turns(step: int) -> np.ndarray:
    """Actions `(n, 1)`: the arms are told to turn in different directions."""
    return np.array([[0.5], [-1.0], [1.5]], np.float32) * (1.0 + 0.1 * step)


def seen(envs: Any, steps: int) -> np.ndarray:
    """Observations `(steps + 1, n, dim)`."""
    obs = [to_host(envs.reset(seed=0)[0]).copy()]
    for step in range(steps):
        obs.append(to_host(envs.step(torch.from_numpy(turns(step)).to(envs.device))[0]).copy())
    return np.stack(obs)


def test_every_sensor_gives_the_numbers_of_the_host_and_waits_for_nothing(make_rovers: Callable[..., Any]) -> None:
    """Through restarts of some envs and of all."""
    steps = 8
    with closing(make_rovers('numpy')) as host:
        host.reset(seed=0)
        wanted = []
        for step in range(steps):
            if step == 2:
                host.core.state.steps[1] = 10**6
            wanted.append(host.step(turns(step))[0].copy())
    with on_a_gpu() as no_waiting, closing(make_rovers('torch')) as envs:
        envs.reset(seed=0)
        actions = [torch.from_numpy(turns(step)).to(envs.device) for step in range(steps)]
        got = []
        for step in range(3):  # all that is made once is made now
            if step == 2:
                envs.core.state.steps[1] = 10**6
            got.append(envs.step(actions[step])[0].clone())
        with no_waiting(), capture_rules() as checked:
            for step in range(3, steps):
                got.append(envs.step(actions[step])[0].clone())
        assert {'step', 'reset', 'kinematics', 'render'} <= {key[0] for key in checked}
        values = np.stack([each.cpu().numpy() for each in got])
    np.testing.assert_allclose(values, np.stack(wanted), rtol=TOLERANCE, atol=TOLERANCE)
    assert (np.ptp(values[:, :, -1 - 100 - 3 :], axis=0) > 0).any()
