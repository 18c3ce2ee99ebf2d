"""`InternUtopia/Homes`: language-conditioned tasks of a Ridgeback with a Franka arm in an apartment of two rooms.

Lengths in metres, in the frame of the scene. What is random in an episode follows from the task, the axis and the
number of the episode alone; except for the axis along which it is perturbed, an episode is the same under all axes.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from internutopia.config import ObjectCfg, TaskCfg
from internutopia.evaluation.suites import NONE, EpisodeSpec, Suite
from internutopia_extension.configs.controllers import ChunkControllerCfg
from internutopia_extension.configs.joint_names import RIDGEBACK_BASE_3
from internutopia_extension.configs.metrics import TaskSuccessMetricCfg
from internutopia_extension.configs.objects import StaticCubeCfg
from internutopia_extension.configs.robots.ridgeback_franka import (
    RidgebackFrankaRobotCfg,
    arm_ik_cfg,
    arm_joint_controller_cfg,
    gripper_cfg,
    move_by_speed_cfg,
)
from internutopia_extension.configs.tasks import JointGoalCfg, NearCfg, PlacementCfg, TabletopTaskCfg
from internutopia_extension.suites import tabletop
from internutopia_extension.suites.apartment import FURNITURE, SCENE, SITES, TABLE, Site
from internutopia_extension.suites.homes_expert import expert
from internutopia_extension.suites.things import (
    CUBES,
    PAD,
    SuiteTask,
    arm_cameras,
    disturbed_home,
    free_place,
    of,
    things,
    turned,
    unseen,
)

_NEAR = 0.9  # of the robot from a piece of furniture, at most

_START = (-0.9, -0.4), (0.2, 0.7)  # lowest and highest x and y of the robot at the start
_THINGS = (-0.12, -0.20), (0.05, 0.20)  # the same of things on a table, from its middle, seen from the robot
_WIDE = (-0.16, -0.25), (0.08, 0.25)  # the same with perturbed poses
_CABINET = (-0.08, -0.10), (-0.02, 0.10)
_AROUND = (-0.21, -0.26), (0.21, 0.26)  # the same of distractors
_APART, _BESIDE = 0.085, 0.18  # between things on a table, and from the middle of a cabinet
_CAMERA, _LOOKS = (0.3, 0.0, 1.3), (1.2, 0.0, 0.5)  # on the base
_CAMERA_MOVED = (0.3, 0.2, 1.3), (0.3, -0.2, 1.3), (0.2, 0.0, 1.5), (0.4, 0.0, 1.1)


_TASKS = {
    'go_to': SuiteTask(
        ('{thing}',),
        ('go to the {thing}', 'drive to the {thing}', 'find the {thing}', 'stop next to the {thing}'),
        [],
        {'thing': list(FURNITURE)},
    ),
    'fetch': SuiteTask(
        ('yellow_pad', 'red_cube', 'green_cube', 'blue_cube'),
        (
            'fetch the {cube} cube: bring it to the yellow pad on the other table',
            'find the {cube} block and put it on the yellow square',
            'carry the {cube} cube over to the yellow mat',
            'the {cube} cube belongs on the yellow pad on the other table',
        ),
        [PlacementCfg(object='{cube}_cube', target='yellow_pad', tolerance=PAD[0] / 2)],
        {'cube': CUBES},
    ),
    'open_drawer': SuiteTask(
        ('cabinet',),
        (
            'find the cabinet and open its drawer',
            'pull out the drawer of the cabinet',
            'get the drawer of the small cabinet open',
            'go and open the drawer',
        ),
        [JointGoalCfg(object='cabinet', joint='drawer', range=(0.09, 0.2))],
    ),
}
_STEPS = {'go_to': 500, 'fetch': 1500, 'open_drawer': 900}  # of an episode, at most
ARM = replace(
    tabletop.ARM,
    robot='ridgeback_franka',
    first_joint=len(RIDGEBACK_BASE_3),
    base_controller=move_by_speed_cfg.name,
    joint_controller=arm_joint_controller_cfg.name,
)


def task_config(spec: EpisodeSpec) -> TaskCfg:
    """Return the task config of an episode."""
    axis, number = spec.perturbation, spec.number
    rng = np.random.default_rng((zlib.crc32(f'homes {spec.task}'.encode()), number))
    own = np.random.default_rng((zlib.crc32(f'homes {spec.task} {axis}'.encode()), number))
    task = _TASKS[spec.task].chosen(rng)
    start = _start(rng)
    sites = [SITES[k] for k in rng.permutation(len(SITES))[:2]]
    placing = own if axis == 'object_pose' else rng
    goals = [*task.goals] or [NearCfg(place=FURNITURE[task.objects[0]], distance=_NEAR)]
    objects: list[ObjectCfg] = []
    for index, site in enumerate(sites):
        names = [] if spec.task == 'go_to' else [name for name in task.objects if name.endswith('_pad') == index]
        distractors = tabletop.DISTRACTORS if axis == 'distractors' and index == 0 else ()
        objects += _placed(names, distractors, site, placing, own, axis == 'object_pose')
    if axis == 'unseen_objects':
        objects = [unseen(each, number) for each in objects]
    colors = tabletop.TABLE_COLORS if axis == 'texture' else (tabletop.TABLE_COLOR,)
    phrase = 1 + number % (len(task.phrases) - 1) if axis == 'instruction' else 0
    return TabletopTaskCfg(
        scene_asset_path=SCENE,
        robots=[_robot(spec, _start(own) if axis == 'robot_start' else start)],
        objects=[*objects, *(_table(index, site, of(colors, number)) for index, site in enumerate(sites))],
        metrics=[TaskSuccessMetricCfg()],
        suite_task=spec.task,
        perturbation=axis,
        number=number,
        instruction=task.phrases[phrase],
        goals=[*goals],
        start_joints=disturbed_home(own) if axis == 'robot_start' else {},
        arm_base='panda_link0',
        max_steps=_STEPS[spec.task],
    )


def _start(rng: np.random.Generator) -> tuple[float, float, float]:
    """Return x, y and heading of the robot."""
    return (*rng.uniform(*_START).tolist(), float(rng.uniform(-math.pi, math.pi)))


def _robot(spec: EpisodeSpec, start: tuple[float, float, float]) -> RidgebackFrankaRobotCfg:
    x, y, heading = start
    place = of(_CAMERA_MOVED, spec.number) if spec.perturbation == 'camera' else _CAMERA
    return RidgebackFrankaRobotCfg(
        position=(x, y, 0.0),
        orientation=turned(heading),
        controllers=[
            arm_ik_cfg.update(reference='arm_base'),
            arm_joint_controller_cfg,
            gripper_cfg,
            move_by_speed_cfg,
            ChunkControllerCfg(name=ARM.chunk_controller),
        ],
        sensors=arm_cameras(spec.cameras, 'base_link', place, _LOOKS),
    )


def _table(index: int, site: Site, color: tuple[float, float, float]) -> ObjectCfg:
    name = f'table_{index}'
    return StaticCubeCfg(
        name=name,
        prim_path=f'/{name}',
        position=(*site.place, TABLE[2] / 2),
        orientation=turned(site.heading),
        scale=TABLE,
        color=color,
    )


def _placed(
    names: Sequence[str],
    distractors: Sequence[str],
    site: Site,
    rng: np.random.Generator,
    own: np.random.Generator,
    moved: bool,
) -> list[ObjectCfg]:
    """Place things, and distractors among them, on a table at random, apart from each other."""
    region = _CABINET if 'cabinet' in names else _WIDE if moved else _THINGS
    apart = _BESIDE if 'cabinet' in names else _APART
    places: list[tuple[np.ndarray, float]] = []
    made: list[ObjectCfg] = []
    for name in (*names, *distractors):
        random, area = (own, _AROUND) if name in distractors else (rng, region)
        place = free_place(random, area, places, site.at)
        turn = random.uniform(-0.3, 0.3) * (1 + moved)
        places.append((place, apart))
        made += things(name, place, site.heading + turn, TABLE[2])
    return made


SUITE = Suite(
    name='InternUtopia/Homes',
    tasks={name: task.chosen(None).phrases[0] for name, task in _TASKS.items()},
    perturbations=(
        NONE,
        'object_pose',
        'unseen_objects',
        'distractors',
        'texture',
        'camera',
        'robot_start',
        'instruction',
    ),
    episodes=50,
    cameras=('front', 'wrist'),
    arm=ARM,
    simulator=tabletop.simulator,
    task_config=task_config,
    objects=tabletop.object_names,
    expert=expert,
)
"""The suite."""
