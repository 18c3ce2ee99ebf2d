"""Getting up: a legged robot stands up from any pose on the ground."""

from __future__ import annotations

from typing import Any

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TermCfg,
)
from internutopia.rl.training.settings import TrainingCfg
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless
from internutopia_extension.learning_tasks.walkers import Walker, look_up_walker

PHYSICS_DT, SUBSTEPS = 1 / 200, 8  # 25 control steps per second


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    robot: str | Walker = 'aliengo',
    max_episode_steps: int = 125,
    scene: str | None = 'scenes/empty.xml',
    drop: tuple[float, float] = (0.4, 0.5),
    standing: float = 0.2,
    threads: int | None = None,
) -> Config:
    """Return envs with one legged robot each, which falls from a random pose, at 25 steps per second.

    The action `(k,)` moves the targets of the robot's leg joints around the home pose, 1 rad for an action of 1. The
    observation is the base's angular velocity (scaled by 0.25), the direction of gravity in its frame, positions of
    these joints relative to home, their velocities (scaled by 0.05) and the last action; a critic also sees the base's
    velocity and height, and the feet's contacts. An episode ends after its steps only. Its metric `uprightness` is 1
    if the base is upright at the end.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        robot: name of a robot in `walkers.WALKERS`, or what must be known about another one.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene; it needs a floor.
        drop: range of the base's height at the start [m].
        standing: share of the episodes that begin on the feet.
        threads: threads of the physics engine; None means one per core.

    Raises:
        ValueError: there is no robot of that name.
    """
    walker = look_up_walker(robot)
    joints = {'joints': list(walker.joints)}
    learning = LearningCfg(
        action=ActionCfg(controller='legs', scale=1.0, offset='home'),
        observations=[
            ObservationTermCfg(term='base_angular_velocity', scale=0.25),
            ObservationTermCfg(term='projected_gravity'),
            ObservationTermCfg(term='joint_positions', params=joints | {'relative': True}),
            ObservationTermCfg(term='joint_velocities', params=joints, scale=0.05),
            ObservationTermCfg(term='last_action'),
        ],
        critic_observations=[
            ObservationTermCfg(term='base_linear_velocity'),
            ObservationTermCfg(term='base_height'),
            ObservationTermCfg(term='feet_contacts'),
        ],
        rewards=[
            RewardTermCfg(term='uprightness', weight=2.0),
            RewardTermCfg(term='risen', params={'height': walker.base_height}, weight=3.0),
            RewardTermCfg(term='upright_posture', params=joints | {'tolerance': 0.5}, weight=3.0),
            RewardTermCfg(term='action_rate_cost', weight=-0.01),
            RewardTermCfg(term='joint_velocity_cost', weight=-2e-4),
            RewardTermCfg(term='power_cost', weight=-1e-4),
        ],
        metrics={'uprightness': TermCfg(term='uprightness')},
        randomizations=[
            RandomizationTermCfg(term='tumbled', params={'height': drop, 'share': 1.0 - standing}),
            RandomizationTermCfg(term='joint_offset', params={'position': (-0.8, 0.8)}),
            RandomizationTermCfg(term='friction', params={'coefficient': (0.6, 1.2)}),
        ],
    )
    legs = JointControllerCfg(name='legs', joint_names=list(walker.joints))
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene,
        robots=[walker.standing(legs)],
        learning=learning,
        max_episode_steps=max_episode_steps,
    )
    return endless(task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)


def training(**options: Any) -> TrainingCfg:
    """Return training settings, for any options of the task."""
    return TrainingCfg(
        env_num=256,
        iterations=400,
        hidden_dims=(128, 64),
        init_std=1.0,
        epochs=4,
        learning_rate=5e-4,
        desired_kl=None,
        gamma=0.98,
        entropy=0.005,
    )
