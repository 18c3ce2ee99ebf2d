"""Sixteen Jetbots in sixteen envs find their cube in a camera image and drive up to it."""

from typing import Any

import numpy as np

from internutopia import Config, Env, SimConfig
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, camera_cfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

WIDTH, HEIGHT = 32, 24  # pixels
NEAR_ENOUGH = 0.25  # m
EDGE = 0.2  # m, of the cube


def task(angle: float) -> FiniteStepTaskCfg:
    """Return a task with a cube 1 m away, somewhere in front of the robot; `angle` to its left [rad]."""
    camera = camera_cfg.update(resolution=(WIDTH, HEIGHT), depth=True, landmarks=True)
    cube = DynamicCubeCfg(
        name='cube',
        prim_path='/cube',
        position=(np.cos(angle), np.sin(angle), 0.5 * EDGE),
        scale=(EDGE, EDGE, EDGE),
        color=(0.9, 0.2, 0.1),
    )
    robot = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg], sensors=[camera])
    return FiniteStepTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot], objects=[cube], max_steps=60)


def find_cube(seen: dict[str, Any]) -> tuple[float, float]:
    """Return where the cube is in the image, from 0 (left) to 1 (right), and how far away [m]."""
    (box,) = seen['bounding_box_2d_tight']['data']
    column, row = (box['x_min'] + box['x_max'] + 1) // 2, (box['y_min'] + box['y_max'] + 1) // 2
    return (column + 0.5) / WIDTH, float(seen['depth'][row, column])


def speeds(seen: dict[str, Any]) -> list[float]:
    """Forward speed [m/s] and turning speed [rad/s] from what the camera sees."""
    place, distance = find_cube(seen)
    return [0.5 if distance > NEAR_ENOUGH else 0.0, 3.0 * (0.5 - place)]


import_extensions()
env = Env(
    Config(
        simulator=SimConfig(physics_dt=1 / 240, substeps=8, rendering_interval=1),
        env_num=16,
        env_offset_size=3.0,
        task_configs=[task(angle) for angle in np.linspace(-0.4, 0.4, 16)],
        metrics_save_path='none',
    )
)
obs, _ = env.reset()
while env.simulation_app.is_running():
    actions = [{'jetbot': {move_by_speed_cfg.name: speeds(o['jetbot']['sensors']['camera'])}} for o in obs]
    obs, *_ = env.step(actions)
distances = [find_cube(o['jetbot']['sensors']['camera'])[1] for o in obs]
env.close()

print(f'{np.median(distances):.2f} m from the cube, the farthest {max(distances):.2f} m')
assert max(distances) < NEAR_ENOUGH
