"""Sensors whose data would not fit into the machine: refused before anything is allocated."""

import pytest

from internutopia.core.vec_env import Env
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg
from internutopia_extension.configs.sensors import LidarCfg, RepCameraCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

ENV_NUM = 100_000
CAMERA = RepCameraCfg(name='eye', prim_path='camera', resolution=(8000, 8000))


def sees(make_config, sensor, env_num=ENV_NUM):
    return make_config(tasks=[SingleInferenceTaskCfg(robots=[JetbotRobotCfg(sensors=[sensor])])], env_num=env_num)


@pytest.mark.parametrize(
    ('sensor', 'bytes_per_env'),
    [
        (CAMERA, 8000**2 * 4),
        (CAMERA.update(pointcloud=True, landmarks=True), 8000**2 * 28),
        (CAMERA.update(semantic_segmentation=True, instance_segmentation=True), 8000**2 * 16),
        (LidarCfg(name='eye', horizontal_rays=10**7), 10**7 * 36),
    ],
)
def test_the_data_of_all_envs_have_to_fit(make_config, sensor, bytes_per_env):
    with pytest.raises(ValueError) as raised:
        Env(sees(make_config, sensor))
    for part in ('task_configs[0]', f'env_num={ENV_NUM}', "'eye' of robot 'jetbot'", 'GiB of memory: use fewer envs'):
        assert part in str(raised.value)
    assert f'{ENV_NUM * bytes_per_env / 2**30:.1f} GiB' in str(raised.value)


def test_a_sensor_that_is_switched_off_takes_nothing(make_config):
    Env(sees(make_config, CAMERA.update(enable=False), env_num=5000)).close()
