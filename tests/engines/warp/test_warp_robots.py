"""Built-in robots on `mujoco_warp`: they do what they do on the CPU engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.config import Config, RobotCfg, SimConfig
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_to_point_cfg
from internutopia_extension.configs.sensors import IMUCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

IMU = IMUCfg(name='imu', prim_path='pelvis')
H1 = H1RobotCfg(position=(0, 0, 1.05), controllers=[move_by_speed_cfg], sensors=[IMU])
JETBOT = JetbotRobotCfg(position=(0, 0, 0.0295), controllers=[move_to_point_cfg])
FRANKA = FrankaRobotCfg(controllers=[arm_ik_cfg, gripper_cfg])


def episode(backend: Any, robot: RobotCfg, action: dict[str, Any], steps: int) -> list[dict[str, Any]]:
    """Observations of a robot in the second of two envs."""
    import_extensions()
    task = FiniteStepTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot], max_steps=steps)
    simulator = SimConfig(physics_dt='1/240', substeps=4, backend=backend, threads=1)
    config = Config(simulator=simulator, env_num=2, metrics_save_path='none', task_configs=[task] * 2)
    env = Env(config)
    env.reset()
    name = robot.name
    seen = [env.step([{name: action}] * 2)[0][1][name] for _ in range(steps)]
    assert env.step([None] * 2)[2] == [True, True]
    env.close()
    return seen


@pytest.mark.parametrize(
    ('robot', 'action', 'steps', 'tolerance'),
    [
        # 4 m/s2 for a wheel that slips or not: a contact more or less at the first instant is some millimetres
        (JETBOT, {'move_to_point': [(1.0, 0.5, 0.0)]}, 60, 0.02),
        pytest.param(H1, {'move_by_speed': (0.6, 0.0, 0.2)}, 20, 1e-3, marks=pytest.mark.slow),
        pytest.param(
            FRANKA, {'arm_ik_controller': [(0.4, 0.2, 0.5), (0.0, 1.0, 0.0, 0.0)]}, 10, 1e-3, marks=pytest.mark.slow
        ),
    ],
    ids=['jetbot', 'h1', 'franka'],
)
def test_an_episode(robot, action, steps, tolerance):
    cpu, warp = (episode(backend, robot, action, steps) for backend in ('mujoco', 'mujoco_warp'))
    for key in ('position', 'orientation', 'joint_positions'):
        np.testing.assert_allclose(warp[-1][key], cpu[-1][key], atol=tolerance)
    start = cpu[0]['joint_positions']
    assert np.abs(cpu[-1]['joint_positions'] - start).max() > 0.05  # it moves
    for name, sensor in cpu[0]['sensors'].items():
        for key, value in sensor.items():
            np.testing.assert_allclose(warp[0]['sensors'][name][key], value, atol=0.05)
