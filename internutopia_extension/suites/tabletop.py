"""`InternUtopia/Tabletop`: language-conditioned tasks of a Franka at a table.

Lengths in metres, in the frame of the robot's base, which stands on the table: x to the front, y to the left. What is
random in an episode follows from the task, the axis and the number of the episode alone; except for its
perturbed axis, an episode is the same under all axes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from internutopia.config import ObjectCfg, SimConfig, TaskCfg
from internutopia.evaluation.suites import NONE, Arm, EpisodeSpec, Suite
from internutopia_extension.configs.controllers import ChunkControllerCfg, JointControllerCfg
from internutopia_extension.configs.joint_names import FRANKA_ARM_7
from internutopia_extension.configs.metrics import TaskSuccessMetricCfg
from internutopia_extension.configs.objects import StaticCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import JointGoalCfg, PlacementCfg, TabletopTaskCfg
from internutopia_extension.suites.scripted import Following, Plan, handle
from internutopia_extension.suites.things import (
    CUBES,
    EDGE,
    KINDS,
    LIGHTING,
    PAD,
    REACH,
    TRIES,
    SuiteTask,
    arm_cameras,
    disturbed_home,
    free_place,
    of,
    things,
    unseen,
)

TABLE_HEIGHT = 0.4
DISTRACTORS = 'orange_cube', 'white_cube', 'black_cube'
ARM = Arm('franka', arm_ik_cfg.name, 'arm_joint_controller', gripper_cfg.name, len(FRANKA_ARM_7), 0.04, 1.4)

_PHYSICS_DT, _SUBSTEPS = 1 / 240, 12  # 20 steps per second
_WIDE = (0.32, -0.32), (0.66, 0.32)  # the same with perturbed poses
_AROUND = (0.26, -0.45), (0.70, 0.45)  # the same of distractors
_CLEAR = 0.11  # between an object and the way of one that is slid, at least
_SCENE = 'scenes/empty.xml'
TABLE_COLORS = (0.45, 0.30, 0.18), (0.75, 0.78, 0.80), (0.20, 0.35, 0.30), (0.60, 0.20, 0.18)
TABLE_COLOR = (0.62, 0.50, 0.36)
_FRONT = (0.98, 0.0, 0.60), (0.45, 0.0, 0.05)  # where the camera stands, and looks
_FRONT_MOVED = (
    ((0.92, 0.25, 0.60), (0.45, 0.0, 0.05)),
    ((0.92, -0.25, 0.60), (0.45, 0.0, 0.05)),
    ((1.02, 0.0, 0.45), (0.45, 0.05, 0.05)),
    ((0.82, 0.0, 0.72), (0.45, -0.05, 0.05)),
)


_TASKS: dict[str, tuple[SuiteTask, ...]] = {
    'pick_and_place': (
        SuiteTask(
            ('yellow_pad', 'purple_pad', 'red_cube', 'green_cube', 'blue_cube'),
            (
                'put the {cube} cube on the {pad} pad',
                'pick up the {cube} block and place it on the {pad} square',
                'move the {cube} cube to the {pad} mat',
                'the {cube} cube belongs on the {pad} pad',
            ),
            [PlacementCfg(object='{cube}_cube', target='{pad}_pad', tolerance=PAD[0] / 2)],
            {'cube': CUBES, 'pad': ('yellow', 'purple')},
        ),
    ),
    'stack': (
        SuiteTask(
            ('red_cube', 'green_cube', 'blue_cube'),
            (
                'stack the {upper} cube on the {lower} cube',
                'put the {upper} block on top of the {lower} one',
                'build a tower with the {upper} cube on the {lower} cube',
                'place {upper} on {lower}',
            ),
            [PlacementCfg(object='{upper}_cube', target='{lower}_cube', tolerance=EDGE / 2)],
            {'upper': CUBES, 'lower': CUBES},
        ),
    ),
    'slide': (
        SuiteTask(
            ('yellow_pad', 'red_cube', 'blue_cube'),
            (
                'slide the {cube} cube onto the yellow pad',
                'push the {cube} block into the yellow zone',
                'without lifting it, move the {cube} cube to the yellow square',
                'shove the {cube} cube over to the yellow area',
            ),
            [PlacementCfg(object='{cube}_cube', target='yellow_pad', tolerance=PAD[0] / 2, highest=EDGE / 2)],
            {'cube': ('red', 'blue')},
        ),
    ),
    'drawer': (
        SuiteTask(
            ('cabinet',),
            ('open the drawer', 'pull the drawer out', 'get the drawer open', 'slide the drawer towards you'),
            [JointGoalCfg(object='cabinet', joint='drawer', range=(0.09, 0.2))],
        ),
        SuiteTask(
            ('cabinet',),
            ('close the drawer', 'push the drawer in', 'shut the drawer', 'slide the drawer back'),
            [JointGoalCfg(object='cabinet', joint='drawer', range=(-0.01, 0.015), start=0.10)],
        ),
    ),
    'door': (
        SuiteTask(
            ('cupboard',),
            ('open the door', 'pull the cupboard open', 'swing the door of the cupboard open', 'get the door open'),
            [JointGoalCfg(object='cupboard', joint='door', range=(0.7, 1.5))],
        ),
    ),
    'press_button': (
        SuiteTask(
            ('console',),
            (
                'press the {button} button',
                'push the {button} button down',
                'hit the {button} key',
                'hold down the button that is {button}',
            ),
            [JointGoalCfg(object='console', joint='{button}', range=(0.008, 0.05))],
            {'button': CUBES},
        ),
    ),
    'insert_peg': (
        SuiteTask(
            ('hole', '{peg}_peg', '{other}_peg'),
            (
                'insert the {peg} peg into the hole',
                'put the {peg} stick into the socket',
                'plug the {peg} peg in',
                'stand the {peg} peg in the square hole',
            ),
            [PlacementCfg(object='{peg}_peg', target='hole', tolerance=0.006)],
            {'peg': CUBES, 'other': CUBES},
        ),
    ),
    'sort': (
        SuiteTask(
            ('{left}_left', '{right}_right', '{left}_block', '{right}_block', '{left}_cube', '{right}_cube'),
            (
                'sort the cubes into the bins of their colours',
                'put each block into the box of its colour',
                'tidy up: every cube goes where its colour is',
                'bring the {left} cubes to the {left} bin and the {right} cubes to the {right} bin',
            ),
            [
                PlacementCfg(object=f'{{{side}}}_{kind}', target=f'{{{side}}}_{side}', tolerance=PAD[0] / 2)
                for side in ('left', 'right')
                for kind in ('block', 'cube')
            ],
            {'left': CUBES, 'right': CUBES},
        ),
    ),
}
_STEPS = {'sort': 800}  # of an episode, at most; of others 300


def task_config(spec: EpisodeSpec) -> TaskCfg:
    """Return the task config of an episode."""
    variants, axis, number = _TASKS[spec.task], spec.perturbation, spec.number
    rng = np.random.default_rng((zlib.crc32(spec.task.encode()), number))
    own = np.random.default_rng((zlib.crc32(f'{spec.task} {axis}'.encode()), number))
    task = of(variants, number).chosen(rng)
    objects = _placed(task, own if axis == 'object_pose' else rng, axis == 'object_pose')
    if axis == 'unseen_objects':
        objects = [unseen(each, number) for each in objects]
    if axis == 'distractors':
        objects += _distractors(objects, own)
    colors = TABLE_COLORS if axis == 'texture' else (TABLE_COLOR,)
    scenes = LIGHTING if axis == 'lighting' else (_SCENE,)
    phrase = 1 + number % (len(task.phrases) - 1) if axis == 'instruction' else 0
    return TabletopTaskCfg(
        scene_asset_path=of(scenes, number),
        robots=[_robot(spec)],
        objects=[*objects, _table(of(colors, number))],
        metrics=[TaskSuccessMetricCfg()],
        suite_task=spec.task,
        perturbation=axis,
        number=number,
        instruction=task.phrases[phrase],
        goals=list(task.goals),
        start_joints=disturbed_home(own) if axis == 'robot_start' else {},
        max_steps=_STEPS.get(spec.task, 300),
    )


def object_names(task: TabletopTaskCfg) -> list[str]:
    """Return the names of the objects and of their parts that a task observes."""
    goals = [goal for goal in task.goals if isinstance(goal, JointGoalCfg)]
    return [*(each.name for each in task.objects), *(f'{goal.object}/{goal.joint}' for goal in goals)]


def opened(joint: str) -> float:
    """Return the position from which on a drawer or door counts as open [m or rad]."""
    goals = [goal for variants in _TASKS.values() for task in variants for goal in task.goals]
    return max(goal.range[0] for goal in goals if isinstance(goal, JointGoalCfg) and goal.joint == joint)


def simulator(threads: int | None) -> SimConfig:
    """Return the simulation settings: 20 steps per second."""
    return SimConfig(physics_dt=_PHYSICS_DT, substeps=_SUBSTEPS, threads=threads)


def _robot(spec: EpisodeSpec) -> FrankaRobotCfg:
    in_base = arm_ik_cfg.update(reference='arm_base')
    joints = JointControllerCfg(name=ARM.joint_controller, joint_names=list(FRANKA_ARM_7))
    chunk = ChunkControllerCfg(name=ARM.chunk_controller)
    fronts = _FRONT_MOVED if spec.perturbation == 'camera' else (_FRONT,)
    front, centre = of(fronts, spec.number)
    cameras = arm_cameras(spec.cameras, 'panda_link0', front, centre)
    return FrankaRobotCfg(
        position=(0.0, 0.0, TABLE_HEIGHT), controllers=[in_base, joints, gripper_cfg, chunk], sensors=cameras
    )


def _table(color: tuple[float, float, float]) -> ObjectCfg:
    return StaticCubeCfg(
        name='table',
        prim_path='/table',
        position=(0.3, 0.0, TABLE_HEIGHT / 2),
        scale=(1.0, 1.2, TABLE_HEIGHT),
        color=color,
    )


def _placed(task: SuiteTask, rng: np.random.Generator, moved: bool) -> list[ObjectCfg]:
    """Place objects at random, apart from each other."""
    kinds = [KINDS[name.rpartition('_')[2]] for name in task.objects]
    regions = np.array([_WIDE if moved and kind.region is REACH else kind.region for kind in kinds])
    gaps = np.array([kind.apart for kind in kinds])
    for _ in range(TRIES):
        places = rng.uniform(regions[:, 0], regions[:, 1])
        distances = np.linalg.norm(places[:, None] - places, axis=-1) + np.eye(len(gaps))
        if (distances >= np.maximum.outer(gaps, gaps)).all() and _is_free(task, places):
            break
    else:
        raise AssertionError('there is no room for the objects')
    turns = rng.uniform(-1.0, 1.0, len(kinds)) * [kind.turn * (1 + moved) for kind in kinds]
    placed = zip(task.objects, places, turns, strict=True)
    return [each for name, place, turn in placed for each in things(name, place, turn, TABLE_HEIGHT)]


def _is_free(task: SuiteTask, places: np.ndarray) -> bool:
    """Return True if nothing stands between an object that must not be lifted and its target."""
    for goal in task.goals:
        if isinstance(goal, PlacementCfg) and goal.highest is not None:
            start, end = (task.objects.index(name) for name in (goal.object, goal.target))
            others = [k for k, name in enumerate(task.objects) if k != start and not name.endswith('_pad')]
            way = np.linspace(places[start], places[end], 10)
            if any(np.linalg.norm(way - places[k], axis=-1).min() < _CLEAR for k in others):
                return False
    return True


def _distractors(objects: Sequence[ObjectCfg], rng: np.random.Generator) -> list[ObjectCfg]:
    """Place further cubes, whose colours no instruction names, apart from the others."""
    kinds = [KINDS.get(each.name.rpartition('_')[2]) for each in objects]
    others: list[tuple[Any, float]] = [
        (each.position[:2], max(kind.apart, 0.11)) for each, kind in zip(objects, kinds, strict=True) if kind
    ]
    found: list[ObjectCfg] = []
    for name in DISTRACTORS:
        place = free_place(rng, _AROUND, others)
        found += things(name, place, rng.uniform(-0.3, 0.3), TABLE_HEIGHT)
        others.append((place, 0.11))
    return found


def expert(task: TabletopTaskCfg) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the actions of an episode by the scripted expert, which is shown where the objects are."""

    def plan(task: TabletopTaskCfg, obs: Mapping[str, Any]) -> Plan:
        for index in range(len(task.goals)):
            obs = yield from handle(task, index, obs)

    return Following(task, plan)


SUITE = Suite(
    name='InternUtopia/Tabletop',
    tasks={name: variants[0].chosen(None).phrases[0] for name, variants in _TASKS.items()},
    perturbations=(
        NONE,
        'object_pose',
        'unseen_objects',
        'distractors',
        'lighting',
        'texture',
        'camera',
        'robot_start',
        'instruction',
    ),
    episodes=50,
    cameras=('front', 'wrist'),
    arm=ARM,
    simulator=simulator,
    task_config=task_config,
    objects=object_names,
    expert=expert,
)
"""The suite."""
