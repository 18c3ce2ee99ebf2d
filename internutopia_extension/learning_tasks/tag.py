"""Tag, a game for two learners: one Jetbot chases the other."""

from __future__ import annotations

import math

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia.config.robot import RobotCfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless

CHASER, RUNNER = 'chaser', 'runner'
ARENA = 2.0  # m, radius


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    max_episode_steps: int = 300,
    scene: str | None = 'scenes/empty.xml',
    threads: int | None = None,
) -> Config:
    """Return envs with the Jetbots `chaser` and `runner`, 1 m apart, at 30 steps per second; see `agents`.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene; it needs a floor.
        threads: threads of the physics engine; None means one per core.
    """
    places = {CHASER: -0.5, RUNNER: 0.5}
    robots: list[RobotCfg] = [
        JetbotRobotCfg(name=name, prim_path=f'/{name}', position=(x, 0.0, 0.03), controllers=[move_by_speed_cfg])
        for name, x in places.items()
    ]
    task = SingleInferenceTaskCfg(scene_asset_path=scene, robots=robots, max_episode_steps=max_episode_steps)
    return endless(task, num_envs, seed, physics_dt=1 / 120, substeps=4, threads=threads)


def agents(radius: float = 0.25, speed: float = 1.0) -> dict[str, LearningCfg]:
    """Return what the two learn: the chaser to be near the runner, the runner to be away.

    Actions `(2,)` are forward speed [m/s] and rotation speed [rad/s], clipped. Observations `(18,)` are the way to the
    other one and its velocity in the own frame [m, m/s], own pose and velocity, and the last action. Being near is
    worth up to 1 per second for the chaser, and costs the runner as much; a catch is worth 5. The episode ends with it,
    and where one of them leaves the arena of 2 m, which costs it 5.

    Args:
        radius: distance that counts as caught [m].
        speed: of the runner, in units of the chaser's.
    """
    ends = [TerminationTermCfg(term='left_area', params={'radius': ARENA})]
    return {
        name: LearningCfg(
            action=ActionCfg(controller='move_by_speed'),
            clip_actions=1.0 if sign > 0 else speed,
            observations=[
                ObservationTermCfg(term='robot_offset', params={'robot': other}),
                ObservationTermCfg(term='robot_velocity', params={'robot': other}),
                ObservationTermCfg(term='base_position'),
                ObservationTermCfg(term='base_orientation'),
                ObservationTermCfg(term='base_linear_velocity'),
                ObservationTermCfg(term='last_action'),
            ],
            rewards=[
                RewardTermCfg(term='robot_near', params={'robot': other, 'tolerance': 0.5}, weight=sign),
                RewardTermCfg(term='robot_within', params={'robot': other, 'radius': radius}, weight=150.0 * sign),
                RewardTermCfg(term='left_area', params={'radius': ARENA}, weight=-150.0),
            ],
            terminations=[*ends, TerminationTermCfg(term='robot_within', params={'robot': other, 'radius': radius})],
            randomizations=[
                RandomizationTermCfg(
                    term='base_pose', params={'x': (-0.3, 0.3), 'y': (-0.6, 0.6), 'yaw': (-math.pi, math.pi)}
                )
            ],
        )
        for name, other, sign in ((CHASER, RUNNER, 1.0), (RUNNER, CHASER, -1.0))
    }
