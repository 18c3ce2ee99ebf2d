"""Carrying together, for two learners or a team: two H1 carry a long box on their forearms to a place ahead of them."""

from __future__ import annotations

from types import MappingProxyType

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
from internutopia.config.robot import RobotCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia_extension.configs.joint_names import H1_19
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless
from internutopia_extension.learning_tasks.navigation import REPEAT
from internutopia_extension.learning_tasks.velocity import PHYSICS_DT, SUBSTEPS
from internutopia_extension.learning_tasks.walkers import WALKERS
from internutopia_extension.robots.legged import H1Robot, both_sides

BOX, EDGE, LENGTH = 'box', 0.15, 1.8  # m
CARRIERS = {'left_h1': 0.6, 'right_h1': -0.6}  # m, along the box and to the left of the origin
GOAL = 'goal'
HEIGHT = 1.3  # m, of the middle of the box that is carried
_ARMS = 'shoulder', 'elbow'  # stay as they are at home
_WALKING = move_by_speed_cfg.update(joint_names=[joint for joint in H1_19 if not any(part in joint for part in _ARMS)])


@BaseRobot.register('H1CarryingRobot')
class H1CarryingRobot(H1Robot):
    """H1 that holds its forearms up, so that a thing lies in its elbows."""

    batched = True
    home = MappingProxyType(dict(H1Robot.home) | both_sides({'shoulder_pitch': -0.8, 'elbow': 0.0}))


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    max_episode_steps: int = 100,
    scene: str | None = 'scenes/empty.xml',
    mass: float = 3.0,
    threads: int | None = None,
) -> Config:
    """Return envs with `left_h1` and `right_h1`, side by side, and a box across their arms; see `agents`.

    They walk by the policy that comes with H1, at 4.8 steps per second.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene; it needs a floor.
        mass: of the box [kg].
        threads: threads of the physics engine; None means one per core.
    """
    robots: list[RobotCfg] = [
        H1RobotCfg(
            name=name,
            type='H1CarryingRobot',
            prim_path=f'/{name}',
            position=(0.0, y, WALKERS['h1'].root_height),
            controllers=[_WALKING],
        )
        for name, y in CARRIERS.items()
    ]
    box = DynamicCubeCfg(
        name=BOX, prim_path=f'/{BOX}', position=(0.24, 0.0, 1.4), scale=(EDGE, LENGTH, EDGE), mass=mass
    )
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene, robots=robots, objects=[box], max_episode_steps=max_episode_steps
    )
    return endless(task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)


def agents(distance: float = 4.0) -> dict[str, LearningCfg]:
    """Return what each H1 learns: to come to its place ahead, with the box, which both are paid for.

    The action is a velocity, as in `navigation`, clipped to those that the walking policy knows. Observations `(21,)`
    are distance [m] to its place, cosine and sine of its bearing, the ways from the pelvis to its end of the box and to
    the other one, and to the other H1 [m], the base's velocity and yaw motion (angular velocity, scaled by 0.25), and
    the last action. An episode ends when one is at its place, falls or is 1 m away from the middle of the box.

    Args:
        distance: from the start to their places [m].
    """
    learners = {}
    for name, y in CARRIERS.items():
        (other,) = CARRIERS.keys() - {name}
        way, place = {'link': 'pelvis', 'body': BOX}, [distance, y, 0.0]
        learners[name] = LearningCfg(
            action=ActionCfg(controller=_WALKING.name, repeat=REPEAT),
            clip_actions=1.0,
            commands={GOAL: CommandTermCfg(term='position', params={'low': place, 'high': place})},
            observations=[
                ObservationTermCfg(term='goal_direction', params={'name': GOAL}),
                ObservationTermCfg(term='object_offset', params=way | {'offset': (0.0, y, 0.0)}),
                ObservationTermCfg(term='object_offset', params=way | {'offset': (0.0, -y, 0.0)}),
                ObservationTermCfg(term='robot_offset', params={'robot': other}),
                ObservationTermCfg(term='base_linear_velocity'),
                ObservationTermCfg(term='base_angular_velocity', scale=0.25),
                ObservationTermCfg(term='last_action'),
            ],
            rewards=[
                RewardTermCfg(term='goal_progress', params={'name': GOAL}),
                RewardTermCfg(term='object_lifted', params={'body': BOX, 'low': 0.9, 'high': HEIGHT}),
                RewardTermCfg(term='action_rate_cost', weight=-0.05),
            ],
            terminations=[
                TerminationTermCfg(term='goal_reached', params={'name': GOAL, 'radius': 0.3}),
                TerminationTermCfg(term='fallen', params={'minimum_height': 0.6}),
                TerminationTermCfg(term='object_away', params={'body': BOX, 'distance': 1.0}),
            ],
            randomizations=[RandomizationTermCfg(term='joint_offset', params={'position': (-0.03, 0.03)})],
        )
    return learners
