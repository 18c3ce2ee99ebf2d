"""Carrying together: two Frankas lift a bar by its ends and keep it level, as two learners or as a team."""

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
from internutopia.config.robot import RobotCfg
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.joint_names import FRANKA_ARM_7, FRANKA_FINGERS
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless
from internutopia_extension.learning_tasks.lift import PHYSICS_DT, STROKE, SUBSTEPS
from internutopia_extension.learning_tasks.reach import TIP

BAR, LENGTH, EDGE = 'bar', 0.5, 0.05  # m
APART = 1.1  # m, between the bases, which face each other
HANDLES = {'left_arm': -0.2, 'right_arm': 0.2}  # m along the bar, where each grips it


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    max_episode_steps: int = 200,
    scene: str | None = 'scenes/empty.xml',
    threads: int | None = None,
) -> Config:
    """Return envs with the Frankas `left_arm` and `right_arm` and a bar on the floor between them; see `agents`.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        max_episode_steps: number of steps after which an episode is truncated, 30 per second.
        scene: file of the scene; it needs a floor.
        threads: threads of the physics engine; None means one per core.
    """
    joints = JointControllerCfg(name='joints', joint_names=[*FRANKA_ARM_7, *FRANKA_FINGERS])
    poses = {'left_arm': (0.0, (1.0, 0.0, 0.0, 0.0)), 'right_arm': (APART, (0.0, 0.0, 0.0, 1.0))}
    robots: list[RobotCfg] = [
        FrankaRobotCfg(name=name, prim_path=f'/{name}', position=(x, 0.0, 0.0), orientation=turn, controllers=[joints])
        for name, (x, turn) in poses.items()
    ]
    place, size = (APART / 2, 0.0, EDGE / 2), (LENGTH, EDGE, EDGE)
    bar = DynamicCubeCfg(name=BAR, prim_path=f'/{BAR}', position=place, scale=size, mass=0.4)
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene, robots=robots, objects=[bar], max_episode_steps=max_episode_steps
    )
    return endless(task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)


def agents(height: float = 0.25) -> dict[str, LearningCfg]:
    """Return what each arm learns: to grip its end of the bar and to lift it, which both are paid for.

    Actions `(9,)` and scales are those of `lift`. Observations `(33,)` are positions relative to home and velocities
    (scaled by 0.2) of all joints, the way from the gripper to its end of the bar and to the other one [m], and the last
    action. An episode ends when the bar is more than 0.9 m away from a base.

    Args:
        height: height of the bar's middle at which it is lifted in full [m].
    """
    scale = dict.fromkeys(FRANKA_ARM_7, 1.5) | dict.fromkeys(FRANKA_FINGERS, STROKE)
    bar, way = {'body': BAR}, {'link': TIP, 'body': BAR}
    return {
        name: LearningCfg(
            action=ActionCfg(controller='joints', scale=scale, offset='home'),
            observations=[
                ObservationTermCfg(term='joint_positions', params={'relative': True}),
                ObservationTermCfg(term='joint_velocities', scale=0.2),
                ObservationTermCfg(term='object_offset', params=way | {'offset': (own, 0.0, 0.0)}),
                ObservationTermCfg(term='object_offset', params=way | {'offset': (-own, 0.0, 0.0)}),
                ObservationTermCfg(term='last_action'),
            ],
            rewards=[
                RewardTermCfg(term='object_near', params=way | {'offset': (own, 0.0, 0.0), 'tolerance': 0.1}),
                RewardTermCfg(term='object_lifted', params=bar | {'low': EDGE / 2, 'high': height}, weight=10.0),
                RewardTermCfg(term='action_rate_cost', weight=-0.01),
                RewardTermCfg(term='joint_velocity_cost', weight=-0.001),
            ],
            terminations=[TerminationTermCfg(term='object_away', params=bar | {'distance': 0.9})],
            randomizations=[RandomizationTermCfg(term='joint_offset', params={'position': (-0.05, 0.05)})],
        )
        for name, own in HANDLES.items()
    }
