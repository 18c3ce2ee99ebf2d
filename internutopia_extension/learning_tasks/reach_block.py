"""Reaching by sight: move the gripper of a Franka to a red block seen by a camera."""

from __future__ import annotations

from internutopia.config import Config
from internutopia.config.learning import (
    ActionCfg,
    LearningCfg,
    ObservationTermCfg,
    PictureGroupCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TerminationTermCfg,
)
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.joint_names import FRANKA_ARM_7
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg
from internutopia_extension.configs.sensors import MountedCameraCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless
from internutopia_extension.learning_tasks.reach import PHYSICS_DT, TIP

SUBSTEPS = 12  # 10 control steps per second: images are what costs time
BLOCK, EDGE = 'block', 0.06  # m
REACHED = 0.06  # m, from the gripper to the middle of the block
RED = (0.9, 0.1, 0.1)
# 1.2 m in front of the base and 0.9 m up, looking back at the middle of the workspace
EYE = {'translation': (1.2, 0.0, 0.9), 'orientation': (0.6575, 0.26, 0.26, 0.6575)}


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    max_episode_steps: int = 30,
    scene: str | None = 'scenes/empty.xml',
    size: int = 84,
    x: tuple[float, float] = (0.4, 0.6),
    y: tuple[float, float] = (-0.25, 0.25),
    threads: int | None = None,
) -> Config:
    """Return envs with one Franka, a red block on the floor and a camera that looks at both, at 10 steps per second.

    The action `(7,)` moves the joint targets of the arm around the home pose, 1.25 rad for an action of 1. Observations
    are a dict: `joints` `(21,)`, positions relative to home and velocities (scaled by 0.2) of the arm's joints and the
    last action, and `camera/front` `(size, size, 3)` uint8. Critics see the way from the gripper to the block [m], too
    (`critic`). An episode ends when the gripper is at the block, which gives a reward of 5.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene; it needs a floor.
        size: width and height of the image [pixels].
        x: range of the block's place, env frame [m].
        y: range of the block's place, env frame [m].
        threads: threads of the physics engine; None means one per core.
    """
    way, arm = {'link': TIP, 'body': BLOCK}, {'joints': FRANKA_ARM_7}
    reached = way | {'radius': REACHED}
    learning = LearningCfg(
        action=ActionCfg(controller='arm', scale=1.25, offset='home'),
        clip_actions=True,
        observations={
            'joints': [
                ObservationTermCfg(term='joint_positions', params=arm | {'relative': True}),
                ObservationTermCfg(term='joint_velocities', params=arm, scale=0.2),
                ObservationTermCfg(term='last_action'),
            ],
            'camera/front': PictureGroupCfg(camera='front'),
            'critic': [ObservationTermCfg(term='object_offset', params=way)],
        },
        rewards=[
            RewardTermCfg(term='object_near', params=way | {'tolerance': 0.3}),
            RewardTermCfg(term='object_near', params=way | {'tolerance': 0.08}),
            RewardTermCfg(term='object_reached', params=reached, weight=5.0 / (PHYSICS_DT * SUBSTEPS)),
            RewardTermCfg(term='action_rate_cost', weight=-0.02),
            RewardTermCfg(term='joint_velocity_cost', weight=-0.005),
        ],
        terminations=[TerminationTermCfg(term='object_reached', params=reached)],
        randomizations=[
            RandomizationTermCfg(term='place_object', params={'body': BLOCK, 'x': x, 'y': y, 'z': EDGE / 2}),
            RandomizationTermCfg(term='joint_offset', params={'position': (-0.1, 0.1)}),
        ],
    )
    camera = MountedCameraCfg(name='front', prim_path='panda_link0/front', resolution=(size, size), fovy=50.0, **EYE)
    arm_joints = JointControllerCfg(name='arm', joint_names=FRANKA_ARM_7)
    edges, place = (EDGE, EDGE, EDGE), (0.5, 0.0, EDGE / 2)
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene,
        robots=[FrankaRobotCfg(controllers=[arm_joints], sensors=[camera])],
        objects=[DynamicCubeCfg(name=BLOCK, prim_path=f'/{BLOCK}', position=place, scale=edges, mass=0.1, color=RED)],
        learning=learning,
        max_episode_steps=max_episode_steps,
    )
    return endless(task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)
