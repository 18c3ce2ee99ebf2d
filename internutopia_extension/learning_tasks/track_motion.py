"""Motion tracking: a humanoid follows a reference motion, as in DeepMimic and BeyondMimic."""

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
    TerminationTermCfg,
)
from internutopia.rl.training.settings import TrainingCfg
from internutopia_extension.configs.joint_names import H1_19
from internutopia_extension.configs.robots.h1 import H1RobotCfg, joint_controller
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless

MOTIONS = {'squat': 'robots/h1/motions/squat.npz', 'walk': 'robots/h1/motions/walk.npz'}
PHYSICS_DT, SUBSTEPS = 1 / 200, 4  # 50 control steps per second
_ARMS = tuple(name for name in H1_19 if 'shoulder' in name or 'elbow' in name)


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    motion: str = 'squat',
    max_episode_steps: int = 400,
    scene: str | None = 'scenes/empty.xml',
    threads: int | None = None,
) -> Config:
    """Return envs with one H1 each that follows a motion, at 50 steps per second.

    The action `(19,)` moves the joint targets around the home pose, 0.5 rad for an action of 1, 1 rad for arms. The
    observation `(113,)` is the next frame of the motion (joint positions relative to home, velocities scaled by 0.05),
    its base in the frame of the robot's base, linear and angular velocity (scaled by 0.25) of the base, the direction
    of gravity in its frame, joint positions relative to home, joint velocities (scaled by 0.05) and the last action.
    An episode begins anywhere in the first 70 % of the motion, and ends with it, or (terminated) when the base is
    0.5 m or 0.8 rad away from it. Metrics are `link_error`, the mean distance of hands, knees, feet and so on from the
    motion in the base frame [m], and `base_error`, that of the base at the end [m].

    Args:
        num_envs: number of envs.
        seed: of everything random.
        motion: name in `MOTIONS`, or the path of another `internutopia.rl.terms.motion.MotionFile` of an H1.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene; it needs a floor.
        threads: threads of the physics engine; None means one per core.
    """
    file = {'file': MOTIONS.get(motion, motion)}
    scale = {name: 1.0 if name in _ARMS else 0.5 for name in H1_19}
    learning = LearningCfg(
        action=ActionCfg(controller='joint_controller', scale=scale, offset='home'),
        observations=[
            ObservationTermCfg(term='motion_reference', params=file),
            ObservationTermCfg(term='motion_anchor', params=file),
            ObservationTermCfg(term='base_linear_velocity'),
            ObservationTermCfg(term='base_angular_velocity', scale=0.25),
            ObservationTermCfg(term='projected_gravity'),
            ObservationTermCfg(term='joint_positions', params={'relative': True}),
            ObservationTermCfg(term='joint_velocities', scale=0.05),
            ObservationTermCfg(term='last_action'),
        ],
        rewards=[
            RewardTermCfg(term='motion_joints', params=file, weight=2.0),
            RewardTermCfg(term='motion_joint_velocities', params=file, weight=0.5),
            RewardTermCfg(term='motion_links', params=file, weight=2.0),
            RewardTermCfg(term='motion_base_position', params=file),
            RewardTermCfg(term='motion_base_orientation', params=file),
            RewardTermCfg(term='motion_base_velocity', params=file),
            RewardTermCfg(term='action_rate_cost', weight=-0.02),
            RewardTermCfg(term='joint_limit_cost', weight=-5.0),
        ],
        terminations=[
            TerminationTermCfg(term='motion_lost', params=file),
            TerminationTermCfg(term='motion_ended', params=file, truncates=True),
        ],
        metrics={
            'link_error': TermCfg(term='motion_link_error', params=file),
            'base_error': TermCfg(term='motion_base_error', params=file),
        },
        randomizations=[RandomizationTermCfg(term='motion_start', params=file | {'joint_offset': 0.05})],
    )
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene,
        robots=[H1RobotCfg(position=(0.0, 0.0, 1.0), controllers=[joint_controller])],
        learning=learning,
        max_episode_steps=max_episode_steps,
    )
    return endless(task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)


def training(motion: str = 'squat', **options: Any) -> TrainingCfg:
    """Return training settings, for any other options of the task: to walk takes longer than to squat."""
    iterations = 300 if motion == 'squat' else 700
    return TrainingCfg(env_num=256, iterations=iterations, hidden_dims=(256, 128), init_std=0.4, gamma=0.98)
