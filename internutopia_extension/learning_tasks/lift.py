"""Lifting: lift a cube with a Franka."""

from __future__ import annotations

from typing import Any

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia.rl.training.settings import TrainingCfg
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.joint_names import FRANKA_ARM_7, FRANKA_FINGERS
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless
from internutopia_extension.learning_tasks.reach import TIP

CUBE, EDGE = 'cube', 0.05  # m
STROKE = 0.04  # m, of a finger
PHYSICS_DT, SUBSTEPS = 1 / 240, 8  # 30 control steps per second; contacts between fingers and cube need short steps


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    max_episode_steps: int = 150,
    scene: str | None = 'scenes/empty.xml',
    height: float = 0.25,
    x: tuple[float, float] = (0.4, 0.6),
    y: tuple[float, float] = (-0.2, 0.2),
    threads: int | None = None,
) -> Config:
    """Return envs with one Franka and a cube of 5 cm on the floor before it, at 30 steps per second.

    The action `(9,)` moves the joint targets of arm and fingers around the home pose, the arm's by 1.5 rad for an
    action of 1; fingers are open at 0 and closed at -1. The observation `(30,)` is positions relative to home and
    velocities (scaled by 0.2) of all joints, the way from the gripper to the cube [m], and the last action. An episode
    ends when the cube is more than 0.9 m away from the base.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene; it needs a floor.
        height: height of the cube's centre at which it is lifted in full [m].
        x: range of the cube's place, env frame [m].
        y: range of the cube's place, env frame [m].
        threads: threads of the physics engine; None means one per core.
    """
    scale = dict.fromkeys(FRANKA_ARM_7, 1.5) | dict.fromkeys(FRANKA_FINGERS, STROKE)
    cube, way = {'body': CUBE}, {'link': TIP, 'body': CUBE}
    learning = LearningCfg(
        action=ActionCfg(controller='joints', scale=scale, offset='home'),
        observations=[
            ObservationTermCfg(term='joint_positions', params={'relative': True}),
            ObservationTermCfg(term='joint_velocities', scale=0.2),
            ObservationTermCfg(term='object_offset', params=way),
            ObservationTermCfg(term='last_action'),
        ],
        rewards=[
            RewardTermCfg(term='object_near', params=way | {'tolerance': 0.1}),
            RewardTermCfg(term='object_lifted', params=cube | {'low': EDGE / 2, 'high': height}, weight=10.0),
            RewardTermCfg(term='action_rate_cost', weight=-0.01),
            RewardTermCfg(term='joint_velocity_cost', weight=-0.001),
        ],
        terminations=[TerminationTermCfg(term='object_away', params=cube | {'distance': 0.9})],
        randomizations=[
            RandomizationTermCfg(term='place_object', params=cube | {'x': x, 'y': y, 'z': EDGE / 2}),
            RandomizationTermCfg(term='joint_offset', params={'position': (-0.05, 0.05)}),
        ],
    )
    joints = JointControllerCfg(name='joints', joint_names=[*FRANKA_ARM_7, *FRANKA_FINGERS])
    place = (0.5, 0.0, EDGE / 2)
    box = DynamicCubeCfg(name=CUBE, prim_path=f'/{CUBE}', position=place, scale=(EDGE, EDGE, EDGE), mass=0.1)
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene,
        robots=[FrankaRobotCfg(controllers=[joints])],
        objects=[box],
        learning=learning,
        max_episode_steps=max_episode_steps,
    )
    return endless(task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)


def training(**options: Any) -> TrainingCfg:
    """Return training settings to start from."""
    return TrainingCfg(
        env_num=512, iterations=1000, hidden_dims=(256, 128, 64), init_std=0.4, gamma=0.98, entropy=0.003
    )
