"""Standing: keep a Unitree H1 upright while it is pushed."""

from __future__ import annotations

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia_extension.configs.robots.h1 import H1RobotCfg, joint_controller
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless

PELVIS_HEIGHT = 0.981  # m, at home with the feet on the floor


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    max_episode_steps: int = 1000,
    scene: str | None = 'scenes/empty.xml',
    push_speed: float = 0.4,
    randomize: bool = True,
    threads: int | None = None,
) -> Config:
    """Return envs with one H1 each, at 50 steps per second.

    The action `(19,)` moves the joint targets around the home pose, 0.3 rad for an action of 1. The observation `(63,)`
    is the base's angular velocity (scaled by 0.25), the direction of gravity in its frame, joint positions relative to
    home, joint velocities (scaled by 0.05) and the last action; a critic also sees the base's velocity and height. An
    episode ends when the pelvis is below 0.6 m or leans by more than 0.8 rad.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene; it needs a floor.
        push_speed: every 2 to 4 s the velocity of the base is changed by up to this along x and y [m/s].
        randomize: whether start, gains, friction and pushes are random.
        threads: threads of the physics engine; None means one per core.
    """
    start = {'position': (-0.05, 0.05), 'velocity': (-0.1, 0.1)}
    randomizations = [
        RandomizationTermCfg(term='joint_offset', params=start),
        RandomizationTermCfg(term='gains', params={'stiffness': (0.9, 1.1), 'damping': (0.9, 1.1)}),
        RandomizationTermCfg(term='friction', params={'coefficient': (0.7, 1.2)}),
        RandomizationTermCfg(term='push', params={'speed': push_speed}, interval=(2.0, 4.0)),
    ]
    learning = LearningCfg(
        action=ActionCfg(controller='joint_controller', scale=0.3, offset='home'),
        observations=[
            ObservationTermCfg(term='base_angular_velocity', scale=0.25),
            ObservationTermCfg(term='projected_gravity'),
            ObservationTermCfg(term='joint_positions', params={'relative': True}),
            ObservationTermCfg(term='joint_velocities', scale=0.05),
            ObservationTermCfg(term='last_action'),
        ],
        critic_observations=[
            ObservationTermCfg(term='base_linear_velocity'),
            ObservationTermCfg(term='base_height'),
        ],
        rewards=[
            RewardTermCfg(term='alive'),
            RewardTermCfg(term='upright'),
            RewardTermCfg(term='height', params={'target': PELVIS_HEIGHT}),
            RewardTermCfg(term='action_rate_cost', weight=-0.01),
            RewardTermCfg(term='joint_velocity_cost', weight=-0.001),
            RewardTermCfg(term='effort_cost', weight=-1e-5),
        ],
        terminations=[
            TerminationTermCfg(term='fallen', params={'minimum_height': 0.6}),
            TerminationTermCfg(term='tilted', params={'limit': 0.8}),
        ],
        randomizations=randomizations if randomize else [],
    )
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene,
        robots=[H1RobotCfg(position=(0.0, 0.0, PELVIS_HEIGHT), controllers=[joint_controller])],
        learning=learning,
        max_episode_steps=max_episode_steps,
    )
    return endless(task, num_envs, seed, physics_dt=1 / 200, substeps=4, threads=threads)
