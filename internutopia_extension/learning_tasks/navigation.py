"""Navigation: walk to points among boxes, with velocity commands to a learned walking policy."""

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
from internutopia_extension.configs.objects import StaticCubeCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless
from internutopia_extension.learning_tasks.velocity import PHYSICS_DT, SUBSTEPS
from internutopia_extension.learning_tasks.walkers import Walker, look_up_walker

GOAL = 'goal'
REPEAT = 10  # policy steps for which a commanded velocity is held
BOX = (0.6, 0.6, 1.0)  # edge lengths of an obstacle [m]


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    robot: str | Walker = 'h1',
    max_episode_steps: int = 150,
    scene: str | None = 'scenes/empty.xml',
    obstacles: int = 6,
    distance: tuple[float, float] = (3.0, 5.0),
    radius: float = 0.3,
    threads: int | None = None,
) -> Config:
    """Return envs with one walking robot each, at 4.8 steps per second.

    The action is a velocity: forward, lateral [m/s] and yaw rate [rad/s]; the robot's `move_by_speed` controller walks.
    The observation `(18,)` is distance [m] to the goal, cosine and sine of its bearing, the base's velocity and yaw
    motion (angular velocity, scaled by 0.25), the last action, and where the three nearest obstacles are in the base's
    heading [m]. Obstacles are boxes around the origin, placed anew in every episode. An episode ends at the goal, which
    gives a reward of 10, when the base is within 0.5 m of an obstacle's centre, and with a fall.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        robot: name of a robot in `walkers.WALKERS`, or what must be known about another one.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene; it needs a floor.
        obstacles: number of boxes, at least 3.
        distance: range of the goal's distance from the origin [m].
        radius: how near the goal counts as reached [m].
        threads: threads of the physics engine; None means one per core.

    Raises:
        ValueError: there is no robot of that name, it has no walking controller, or there are too few obstacles.
    """
    walker = look_up_walker(robot)
    if walker.walking is None:
        raise ValueError(f'robot {walker.config.name!r} has no walking controller: train it on its velocity task first')
    if obstacles < 3:
        raise ValueError(f'obstacles={obstacles}: the observation shows the three nearest, so there must be 3 or more')
    names = [f'box_{i}' for i in range(obstacles)]
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene,
        robots=[walker.standing(walker.walking)],
        objects=[
            StaticCubeCfg(name=name, prim_path=f'/{name}', scale=BOX, position=(2.0 + i, 0.0, BOX[2] / 2))
            for i, name in enumerate(names)
        ],
        learning=_learning(walker, walker.walking.name, names, distance, radius),
        max_episode_steps=max_episode_steps,
    )
    return endless(
        task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads, env_offset_size=20.0
    )


def _learning(
    walker: Walker, controller: str, boxes: list[str], distance: tuple[float, float], radius: float
) -> LearningCfg:
    goal, obstacles = {'name': GOAL}, {'objects': boxes}
    arrival = goal | {'radius': radius}
    step = PHYSICS_DT * SUBSTEPS * REPEAT
    return LearningCfg(
        action=ActionCfg(controller=controller, repeat=REPEAT),
        commands={
            GOAL: CommandTermCfg(term='goal', params={'distance': distance, 'avoid': boxes, 'clearance': 1.0}),
        },
        observations=[
            ObservationTermCfg(term='goal_direction', params=goal),
            ObservationTermCfg(term='base_linear_velocity'),
            ObservationTermCfg(term='base_angular_velocity', scale=0.25),
            ObservationTermCfg(term='last_action'),
            ObservationTermCfg(term='nearest_objects', params=obstacles | {'count': 3}, clip=5.0),
        ],
        rewards=[
            RewardTermCfg(term='goal_progress', params=goal),
            RewardTermCfg(term='goal_reached', params=arrival, weight=10.0 / step),  # 10 for the one step that it lasts
            RewardTermCfg(term='near_objects_cost', params=obstacles | {'distance': 0.9}, weight=-2.0),
            RewardTermCfg(term='action_rate_cost', weight=-0.05),
        ],
        terminations=[
            TerminationTermCfg(term='goal_reached', params=arrival),
            TerminationTermCfg(term='near_object', params=obstacles | {'distance': 0.5}),
            TerminationTermCfg(term='fallen', params={'minimum_height': 0.6 * walker.base_height}),
        ],
        randomizations=[
            RandomizationTermCfg(term='base_pose', params={'yaw': (-math.pi, math.pi)}),
            RandomizationTermCfg(term='scatter', params=obstacles | {'distance': (1.5, 3.5)}),
        ],
    )
