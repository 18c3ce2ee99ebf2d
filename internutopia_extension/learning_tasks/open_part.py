"""Opening: pull a drawer or a door of `InternUtopia/Tabletop` open by its handle, with a Franka."""

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
from internutopia.config.robot import MimicCfg
from internutopia.rl.training.settings import TrainingCfg
from internutopia.util import did_you_mean
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.joint_names import FRANKA_ARM_7, FRANKA_FINGERS
from internutopia_extension.configs.objects import StaticCubeCfg, UsdObjCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.learning_tasks.endless import endless
from internutopia_extension.learning_tasks.reach import TIP
from internutopia_extension.suites.tabletop import opened
from internutopia_extension.suites.things import MODELS

PHYSICS_DT, SUBSTEPS = 1 / 160, 8  # 20 control steps per second
STROKE = 0.04  # m, of a finger
FRONT, TABLE = 0.55, 0.26  # m: of the furniture from the base of the arm, and height of its top, below the gripper
PARTS = {'drawer': ('cabinet', 0.0), 'door': ('cupboard', 0.075)}  # furniture, and its offset that has the handle ahead


def config(
    num_envs: int = 1,
    seed: int | None = None,
    *,
    part: str = 'drawer',
    max_episode_steps: int = 80,
    scene: str | None = 'scenes/empty.xml',
    x: tuple[float, float] = (-0.02, 0.02),
    y: tuple[float, float] = (-0.06, 0.06),
    threads: int | None = None,
) -> Config:
    """Return envs with one Franka and a cabinet or cupboard on a table before it, at 20 steps per second.

    The action `(8,)` moves the joint targets of arm and fingers around the home pose, the arm's by 0.6 rad for an
    action of 1; fingers are open at 0 and closed at -1. The observation `(30,)` is positions relative to home and
    velocities (scaled by 0.2) of all joints, the way from the gripper to the handle [m], the position of the part's
    joint, and the last action. An episode ends after its steps only. Its metric `opened` is 1 if the part is open as
    the suite asks for at the end, 0 if it is closed.

    Args:
        num_envs: number of envs.
        seed: of everything random.
        part: `'drawer'` or `'door'`.
        max_episode_steps: number of steps after which an episode is truncated.
        scene: file of the scene; it needs a floor.
        x: range by which the furniture is moved to the front [m].
        y: range by which it is moved to the left [m].
        threads: threads of the physics engine; None means one per core.

    Raises:
        ValueError: there is no such part.
    """
    if part not in PARTS:
        raise ValueError(f'there is no part {part!r}; {did_you_mean(part, PARTS)}')
    furniture, aside = PARTS[part]
    goal = {'body': furniture, 'joint': part, 'low': 0.0, 'high': opened(part)}
    handle = {'link': TIP, 'body': f'{furniture}/{part}'}
    closing = handle | {'joints': FRANKA_FINGERS, 'opening': STROKE, 'radius': 0.03}
    learning = LearningCfg(
        action=ActionCfg(
            controller='joints', scale=dict.fromkeys(FRANKA_ARM_7, 0.6) | {FRANKA_FINGERS[0]: STROKE}, offset='home'
        ),
        clip_actions=True,
        observations=[
            ObservationTermCfg(term='joint_positions', params={'relative': True}),
            ObservationTermCfg(term='joint_velocities', scale=0.2),
            ObservationTermCfg(term='object_offset', params=handle),
            ObservationTermCfg(term='object_joint', params={'body': furniture, 'joint': part}),
            ObservationTermCfg(term='last_action'),
        ],
        rewards=[
            RewardTermCfg(term='object_near', params=handle | {'tolerance': 0.2}),
            RewardTermCfg(term='object_near', params=handle | {'tolerance': 0.03}, weight=2.0),
            RewardTermCfg(term='grip', params=closing, weight=2.0),
            RewardTermCfg(term='object_joint_moved', params=goal, weight=10.0),
            RewardTermCfg(term='action_rate_cost', weight=-0.02),
            RewardTermCfg(term='joint_velocity_cost', weight=-0.01),
        ],
        metrics={'opened': TermCfg(term='object_joint_moved', params=goal)},
        randomizations=[
            RandomizationTermCfg(
                term='place_object',
                params={'body': furniture, 'x': _around(FRONT, x), 'y': _around(aside, y), 'z': TABLE, 'fixed': True},
            ),
            RandomizationTermCfg(term='joint_offset', params={'position': (-0.05, 0.05)}),
        ],
    )
    fingers = {FRANKA_FINGERS[1]: MimicCfg(multipliers={FRANKA_FINGERS[0]: 1.0})}
    joints = JointControllerCfg(name='joints', joint_names=[*FRANKA_ARM_7, FRANKA_FINGERS[0]], mimic=fingers)
    table = StaticCubeCfg(
        name='table', prim_path='/table', position=(FRONT + 0.15, 0.0, TABLE / 2), scale=(0.4, 0.6, TABLE)
    )
    model = str(MODELS / f'{furniture}.xml')
    stand = UsdObjCfg(
        name=furniture, prim_path=f'/{furniture}', position=(FRONT, aside, TABLE), usd_path=model, fixed=True
    )
    task = SingleInferenceTaskCfg(
        scene_asset_path=scene,
        robots=[FrankaRobotCfg(controllers=[joints])],
        objects=[table, stand],
        learning=learning,
        max_episode_steps=max_episode_steps,
    )
    return endless(task, num_envs, seed, physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)


def training(**options: Any) -> TrainingCfg:
    """Return training settings, for any options of the task."""
    return TrainingCfg(
        env_num=256,
        iterations=250,
        num_steps=20,
        hidden_dims=(128, 64),
        init_std=0.5,
        gamma=0.97,
        entropy=0.002,
        mini_batches=4,
    )


def _around(middle: float, offsets: tuple[float, float]) -> tuple[float, float]:
    return middle + offsets[0], middle + offsets[1]
