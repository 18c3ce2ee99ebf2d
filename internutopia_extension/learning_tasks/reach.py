"""Reaching: move the gripper of a Franka to a point."""

from __future__ import annotations

from typing import Any

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    CommandTermCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
)
from internutopia.rl.training.settings import TrainingCfg
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.joint_names import FRANKA_ARM_7
from internutopia_extension.configs.robots.franka import FrankaRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless

TIP = 'right_gripper'
TARGET = 'target'
PHYSICS_DT, SUBSTEPS = 1 / 120, 4  # 30 control steps per second


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    max_episode_steps: int = 120,
    scene: str | None = 'scenes/empty.xml',
    low: tuple[float, float, float] = (0.35, -0.3, 0.1),
    high: tuple[float, float, float] = (0.65, 0.3, 0.5),
    threads: int | None = None,
) -> Config:
    """Return envs with one Franka each, at 30 steps per second.

    The action `(7,)` moves the joint targets of the arm around the home pose, 1.25 rad for an action of 1. The
    observation `(27,)` is positions relative to home and velocities (scaled by 0.2) of the arm's joints, the target and
    the way from the gripper to it [m], and the last action. An episode ends after its steps; a new target is sampled
    halfway.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene.
        low: least coordinates of a target, env frame [m].
        high: greatest coordinates of a target, env frame [m].
        threads: threads of the physics engine; None means one per core.
    """
    way, arm = {'link': TIP, 'name': TARGET}, {'joints': FRANKA_ARM_7}
    half = max_episode_steps // 2 * SUBSTEPS * PHYSICS_DT
    learning = LearningCfg(
        action=ActionCfg(controller='arm', scale=1.25, offset='home'),
        commands={
            TARGET: CommandTermCfg(term='position', params={'low': low, 'high': high}, resample_time=half or None)
        },
        observations=[
            ObservationTermCfg(term='joint_positions', params=arm | {'relative': True}),
            ObservationTermCfg(term='joint_velocities', params=arm, scale=0.2),
            ObservationTermCfg(term='command', params={'name': TARGET}),
            ObservationTermCfg(term='target_offset', params=way),
            ObservationTermCfg(term='last_action'),
        ],
        rewards=[
            RewardTermCfg(term='target_distance', params=way, weight=-2.0),
            RewardTermCfg(term='target_near', params=way | {'tolerance': 0.05}, weight=2.0),
            RewardTermCfg(term='action_rate_cost', weight=-0.02),
            RewardTermCfg(term='joint_velocity_cost', weight=-0.005),
        ],
        randomizations=[RandomizationTermCfg(term='joint_offset', params={'position': (-0.2, 0.2)})],
    )
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene,
        robots=[FrankaRobotCfg(controllers=[JointControllerCfg(name='arm', joint_names=FRANKA_ARM_7)])],
        learning=learning,
        max_episode_steps=max_episode_steps,
    )
    return endless(task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)


def training(**options: Any) -> TrainingCfg:
    """Return training settings, for any options of the task: a few minutes on one core."""
    return TrainingCfg(
        env_num=256,
        iterations=150,
        num_steps=24,
        hidden_dims=(128, 64),
        init_std=0.4,
        epochs=4,
        mini_batches=4,
        learning_rate=1e-3,
        desired_kl=None,
        gamma=0.95,
        entropy=0.0,
        save_every=50,
    )
