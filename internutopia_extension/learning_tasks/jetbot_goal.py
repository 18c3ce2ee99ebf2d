"""Goal reaching: drive a Jetbot to a point."""

from __future__ import annotations

import math

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    CommandTermCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    max_episode_steps: int = 500,
    scene: str | None = 'scenes/empty.xml',
    distance: tuple[float, float] = (0.5, 2.0),
    radius: float = 0.15,
    threads: int | None = None,
) -> Config:
    """Return envs with one Jetbot each, at 50 steps per second.

    The action is forward speed [m/s] and rotation speed [rad/s]; the observation `(11,)` is distance [m] to the goal,
    cosine and sine of its bearing, the base's velocity and angular velocity (scaled by 0.25) in its own frame, the last
    action (scaled by 0.5). An episode ends at the goal, which gives a reward of 5, and 4 m from the origin.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene; it needs a floor.
        distance: range of the goal's distance from the origin [m].
        radius: how near the goal counts as reached [m].
        threads: threads of the physics engine; None means one per core.
    """
    goal = {'name': 'goal'}
    arrival = {**goal, 'radius': radius}
    learning = LearningCfg(
        action=ActionCfg(controller='move_by_speed'),
        commands={'goal': CommandTermCfg(term='goal', params={'distance': distance})},
        observations=[
            ObservationTermCfg(term='goal_direction', params=goal),
            ObservationTermCfg(term='base_linear_velocity'),
            ObservationTermCfg(term='base_angular_velocity', scale=0.25),
            ObservationTermCfg(term='last_action', scale=0.5),
        ],
        rewards=[
            RewardTermCfg(term='goal_progress', params=goal),
            RewardTermCfg(term='goal_reached', params=arrival, weight=250.0),  # 5 for the one step that it lasts
            RewardTermCfg(term='action_rate_cost', weight=-0.005),
        ],
        terminations=[
            TerminationTermCfg(term='goal_reached', params=arrival),
            TerminationTermCfg(term='left_area', params={'radius': 4.0}),
        ],
        randomizations=[RandomizationTermCfg(term='base_pose', params={'yaw': (-math.pi, math.pi)})],
    )
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene,
        robots=[JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg])],
        learning=learning,
        max_episode_steps=max_episode_steps,
    )
    return endless(task, num_envs, seed, physics_dt=1 / 200, substeps=4, threads=threads)
