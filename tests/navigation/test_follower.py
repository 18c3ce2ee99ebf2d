"""Robots that follow paths of the map to their ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.config import Config, RobotCfg, SimConfig
from internutopia.core.vec_env import Env
from internutopia.navigation import Agent, NavigationMap
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots import h1, jetbot
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

SCENE = 'scenes/apartment.usda'


def follow(robot: RobotCfg, start: tuple[float, float], goal: tuple[float, float], steps: int) -> tuple[float, float]:
    """Length of the path from start to goal, and how far from the goal the robot is in the end [m]."""
    import_extensions()
    robot = robot.model_copy(update={'position': (*start, robot.position[2])})
    found = NavigationMap.of_scene(SCENE, Agent.of(robot))
    points, length = found.shortest_path([*start, 0.0], [[*goal, 0.0]])
    simulator = SimConfig(physics_dt=1 / 200, substeps=4)
    task = SingleInferenceTaskCfg(scene_asset_path=SCENE, robots=[robot])
    env = Env(Config(simulator=simulator, metrics_save_path='none', task_configs=[task]))
    observations: list[Any] = env.reset()[0]
    for _ in range(steps):
        observations = env.step([{robot.name: {'move_along_path': [points.tolist()]}}])[0]
        if observations[0][robot.name]['controllers']['move_along_path']['finished']:
            break
    env.close()
    return length, float(np.linalg.norm(observations[0][robot.name]['position'][:2] - np.array(goal)))


@pytest.mark.slow
def test_a_jetbot_drives_around_furniture() -> None:
    """From one room through the doorway to the other."""
    robot = jetbot.JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[jetbot.move_along_path_cfg])
    length, away = follow(robot, (0.5, 0.0), (3.0, -1.2), steps=600)
    assert length > 2.7 and away < 0.12


@pytest.mark.slow
def test_an_h1_walks_around_furniture() -> None:
    robot = h1.H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[h1.move_along_path_cfg])
    length, away = follow(robot, (-2.0, 0.2), (3.0, -1.0), steps=1500)
    assert length > 5.0 and away < 0.12
