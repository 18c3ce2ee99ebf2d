"""Point-goal navigation: reach a goal around obstacles, from its distance and direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    CommandTermCfg,
    LearningCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TermCfg,
    TerminationTermCfg,
)
from internutopia.config.robot import RobotCfg, SensorCfg
from internutopia.rl.training.settings import TrainingCfg
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, camera_cfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless
from internutopia_extension.learning_tasks.velocity import PHYSICS_DT, SUBSTEPS
from internutopia_extension.learning_tasks.walkers import look_up_walker

GOAL = 'goal'
STEP = 0.2  # s, for which a commanded velocity is held
SLACK = -0.01  # reward of a step, as in Habitat
SUCCESS = 2.5  # reward of reaching the goal, as in Habitat
_CAMERA = camera_cfg.update(resolution=(32, 18), rgba=False, depth=True)


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    robot: str = 'jetbot',
    observation: Literal['map', 'depth'] = 'map',
    scenes: Sequence[str] = ('scenes/rooms.xml',),
    distance: tuple[float, float] = (1.0, 30.0),
    radius: float = 0.36,
    max_episode_steps: int = 200,
    threads: int | None = None,
) -> Config:
    """Return envs with one robot each in furnished scenes, at 5 steps per second.

    The action is a velocity, forward and yaw rate ([m/s], [rad/s]; of robots on legs, lateral [m/s] between them), for
    the controller `move_by_speed`. The observation is distance [m] to the goal, cosine and sine of its bearing (a GPS
    with compass), the base's velocity and angular velocity (scaled by 0.25), the last action, and what is around:
    `'map'`, a crop of the scene's navigation map, 16 x 16 pixels of 0.2 m; or `'depth'`, an image of 32 x 18 pixels
    of the Jetbot's camera, distances up to 5 m scaled by 0.2.

    The reward is Habitat's (Savva et al. 2019, arXiv:1904.01201): what the geodesic distance to the goal has fallen by
    [m], -0.01 in each step, and 2.5 at the goal, where the episode ends. `info` has `success`, `spl`, `path_length` [m]
    and `distance_to_goal` (geodesic [m]) of episodes that ended. Starts and goals are anywhere on the main island of a
    scene's map; episodes take the scenes in turn.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        robot: `'jetbot'`, or name of a robot in `walkers.WALKERS`.
        observation: of what is around the robot.
        scenes: files of the scenes.
        distance: range of the geodesic distance from start to goal [m].
        radius: how near the goal counts as reached [m].
        max_episode_steps: number of steps after which an episode is truncated.
        threads: threads of the physics engine; None means one per core.

    Raises:
        ValueError: there is no such robot or observation, no scene, or the robot has no camera or no controller.
    """
    if not scenes:
        raise ValueError('scenes: there must be one at least')
    if observation not in ('map', 'depth'):
        raise ValueError(f"observation={observation!r}: expected 'map' or 'depth'")
    if observation == 'depth' and robot != 'jetbot':
        raise ValueError(f"observation='depth' is only available for the jetbot, got robot={robot!r}")
    learner, physics_dt, substeps = _learner(robot, observation)
    learning = _learning(robot, round(STEP / (physics_dt * substeps)), observation, distance, radius)
    tasks = [
        SingleInferenceTaskCfg(
            scene_asset_path=scene, robots=[learner], learning=learning, max_episode_steps=max_episode_steps
        )
        for scene in scenes
    ]
    envs = endless(
        tasks[0], num_envs, seed, physics_dt=physics_dt, substeps=substeps, threads=threads, env_offset_size='auto'
    )
    return envs.update(task_configs=tasks)


def training(**options: Any) -> TrainingCfg:
    """Return training settings, for any options of the task."""
    return TrainingCfg(
        env_num=64,
        iterations=150,
        num_steps=32,
        hidden_dims=(256, 128, 64),
        init_std=0.6,
        epochs=4,
        mini_batches=4,
        learning_rate=5e-4,
        desired_kl=None,
        gamma=0.98,
        entropy=0.003,
        save_every=50,
    )


def _learner(robot: str, observation: str) -> tuple[RobotCfg, float, int]:
    """Return the robot at the origin, length of a substep [s], and substeps of an env step."""
    if robot == 'jetbot':
        sensors: list[SensorCfg] = [_CAMERA] if observation == 'depth' else []
        cfg = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg], sensors=sensors)
        return cfg, 1 / 200, 4
    walker = look_up_walker(robot)
    if walker.walking is None:
        raise ValueError(f'robot {robot!r} has no walking controller: train it on its velocity task first')
    return walker.standing(walker.walking), PHYSICS_DT, SUBSTEPS


def _learning(robot: str, repeat: int, observation: str, distance: tuple[float, float], radius: float) -> LearningCfg:
    goal = {'name': GOAL}
    arrival = goal | {'radius': radius}
    around = (
        ObservationTermCfg(term='local_map')
        if observation == 'map'
        else ObservationTermCfg(
            term='camera', params={'name': _CAMERA.name, 'data': 'depth', 'max_depth': 5.0}, scale=0.2
        )
    )
    ends = [TerminationTermCfg(term='goal_reached', params=arrival)]
    if robot != 'jetbot':
        height = 0.6 * look_up_walker(robot).base_height
        ends.append(TerminationTermCfg(term='fallen', params={'minimum_height': height}))
    return LearningCfg(
        action=ActionCfg(controller='move_by_speed', repeat=repeat),
        commands={GOAL: CommandTermCfg(term='point_goal', params={'distance': distance})},
        observations=[
            ObservationTermCfg(term='goal_direction', params=goal),
            ObservationTermCfg(term='base_linear_velocity'),
            ObservationTermCfg(term='base_angular_velocity', scale=0.25),
            ObservationTermCfg(term='last_action', clip=2.0),
            around,
        ],
        rewards=[  # rates: those of a step are divided by its length
            RewardTermCfg(term='geodesic_progress', params=goal),
            RewardTermCfg(term='alive', weight=SLACK / STEP),
            RewardTermCfg(term='goal_reached', params=arrival, weight=SUCCESS / STEP),
        ],
        terminations=ends,
        metrics={
            'success': TermCfg(term='success', params=arrival),
            'spl': TermCfg(term='spl', params=arrival),
            'path_length': TermCfg(term='path_length'),
            'distance_to_goal': TermCfg(term='geodesic_distance', params=goal),
        },
        randomizations=[RandomizationTermCfg(term='map_start')],
    )
