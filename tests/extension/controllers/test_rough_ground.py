"""Walking on rough ground: over the whole course, with the policy of that name."""

import numpy as np
import pytest

from internutopia.config import Config, SimConfig, TaskCfg
from internutopia.core.vec_env import Env
from internutopia_extension.configs.robots import aliengo, g1, h1
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

LENGTH = 20.0  # m
RATE = 48  # env steps per second


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('walk', 'robot', 'height', 'speed'),
    [
        (aliengo.move_by_speed_cfg, aliengo.AliengoRobotCfg, 0.4, 0.9),
        (h1.move_by_speed_cfg, h1.H1RobotCfg, 0.99, 0.9),
        (g1.move_by_speed_cfg, g1.G1RobotCfg, 0.79, 0.75),
    ],
    ids=['aliengo', 'h1', 'g1'],
)
def test_over_random_ground_a_slope_and_stairs(walk, robot, height, speed):
    walk = walk.update(policy='rough')
    tasks: list[TaskCfg] = [
        SingleInferenceTaskCfg(
            scene_asset_path='scenes/course.xml',
            robots=[robot(name='robot', position=(0.0, y, height), controllers=[walk])],
        )
        for y in (-0.6, -0.2, 0.2, 0.6)
    ]
    simulator = SimConfig(physics_dt=1 / 240, substeps=5)
    env = Env(Config(simulator=simulator, env_num=4, task_configs=tasks, metrics_save_path='none'))
    obs, _ = env.reset()
    for _ in range(40 * RATE):
        commands = [[speed, 0.0, -2.0 * yaw(each['robot']['orientation'])] for each in obs]
        obs, *_ = env.step([{'robot': {walk.name: command}} for command in commands])
        if min(each['robot']['position'][0] for each in obs) > LENGTH:
            break
    # one may fall, as on any 20 m of such ground, and on another processor's last digit
    assert sum(each['robot']['position'][0] > LENGTH for each in obs) >= 3
    env.close()


def yaw(orientation: np.ndarray) -> float:
    """Of (w, x, y, z) [rad]."""
    w, x, y, z = orientation
    return float(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))
