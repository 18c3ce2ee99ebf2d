"""Sensors that a learner observes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from internutopia.rl import VectorEnv
from internutopia_extension.configs.sensors import IMUCfg


def test_a_sensor_is_observed(make_learner: Callable[..., VectorEnv], hopper: Any) -> None:
    body = hopper.update(sensors=[IMUCfg(name='imu')])
    imu = {'term': 'sensor', 'params': {'name': 'imu', 'key': 'linear_acceleration'}}
    envs = make_learner(body=body, observations=[imu])
    obs, _ = envs.reset()
    assert obs.shape == (3, 3) and np.abs(obs).max() < 1.0  # it falls freely
    for _ in range(60):
        obs, *_ = envs.step(np.zeros((3, 2)))
    sensor = envs.core.state.robot.sensors['imu']
    np.testing.assert_array_equal(obs, sensor.get_data()['linear_acceleration'])
    assert np.linalg.norm(obs, axis=-1).min() > 5.0  # it lies on the floor


@pytest.mark.parametrize(
    'params, message',
    [
        ({'name': 'iku', 'key': 'x'}, "robot 'hopper' has no batched sensor 'iku'; did you mean 'imu'"),
        ({'name': 'imu', 'key': 'orientaton'}, "sensor 'imu' has no 'orientaton'; did you mean 'orientation'"),
    ],
)
def test_what_is_not_there_is_named(
    make_learner: Callable[..., VectorEnv], hopper: Any, params: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make_learner(
            body=hopper.update(sensors=[IMUCfg(name='imu')]), observations=[{'term': 'sensor', 'params': params}]
        )
