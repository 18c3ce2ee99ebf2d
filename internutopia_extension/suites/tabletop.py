"""`InternUtopia/Tabletop`: language-conditioned tasks of a Franka at a table.

Lengths in metres, in the frame of the robot's base, which stands on the table: x to the front, y to the left. What is
random in an episode follows from the task, the axis and the number of the episode alone; but for the axis along which
it is perturbed, an episode is the same under all axes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from internutopia.config import ObjectCfg, SimConfig, TaskCfg
from internutopia.config.robot import SensorCfg
from internutopia.evaluation.suites import NONE, Arm, EpisodeSpec, Suite
from internutopia.model.importers.transforms import to_quat
from internutopia.rendering.camera import rotation_towards
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.joint_names import FRANKA_ARM_7
from internutopia_extension.configs.metrics import TaskSuccessMetricCfg
from internutopia_extension.configs.objects import DynamicCubeCfg, StaticCubeCfg, VisualCubeCfg
from internutopia_extension.configs.robots.franka import FrankaRobotCfg, arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.sensors import MountedCameraCfg
from internutopia_extension.configs.tasks import PlacementCfg, TabletopTaskCfg
from internutopia_extension.suites.tabletop_expert import expert

ChoiceT = TypeVar('ChoiceT')

TABLE_HEIGHT = 0.4
EDGE = 0.04  # of the cubes
PAD = 0.12, 0.12, 0.002  # of the pads
COLORS = {
    'red': (0.80, 0.10, 0.10),
    'green': (0.10, 0.55, 0.15),
    'blue': (0.10, 0.25, 0.80),
    'yellow': (0.90, 0.75, 0.10),
    'purple': (0.50, 0.15, 0.60),
    'orange': (0.90, 0.45, 0.05),
    'white': (0.90, 0.90, 0.90),
    'black': (0.08, 0.08, 0.08),
}
DISTRACTORS = 'orange', 'white', 'black'
ARM = Arm('franka', arm_ik_cfg.name, 'arm_joint_controller', gripper_cfg.name, len(FRANKA_ARM_7), 0.04)

_PHYSICS_DT, _SUBSTEPS = 1 / 240, 12  # 20 steps per second
_REACH = (0.36, 0.60), (-0.22, 0.22)  # x and y of what the arm has to reach
_WIDE = (0.32, 0.66), (-0.32, 0.32)  # the same with perturbed poses, and with distractors
_TURN = 0.3  # rad, by which cubes are turned, at most; with perturbed poses twice as much
_APART = 0.10  # between the centres of cubes, at least
_PAD_APART = 0.13  # between a pad and cubes
_CLEAR = 0.11  # between a cube and the way of one that is slid, at least
_TRIES = 10_000
_SCENES = Path(__file__).parent / 'scenes'
_SCENE = 'scenes/empty.xml'
_LIGHTING = tuple(str(_SCENES / f'{name}.xml') for name in ('evening', 'lamp', 'noon'))
_TABLE_COLORS = (0.45, 0.30, 0.18), (0.75, 0.78, 0.80), (0.20, 0.35, 0.30), (0.60, 0.20, 0.18)
_TABLE_COLOR = (0.62, 0.50, 0.36)
_FRONT = (0.98, 0.0, 0.60), (0.45, 0.0, 0.05)  # where the camera stands, and looks
_FRONT_MOVED = (
    ((0.92, 0.25, 0.60), (0.45, 0.0, 0.05)),
    ((0.92, -0.25, 0.60), (0.45, 0.0, 0.05)),
    ((1.02, 0.0, 0.45), (0.45, 0.05, 0.05)),
    ((0.82, 0.0, 0.72), (0.45, -0.05, 0.05)),
)


@dataclass(frozen=True)
class _Setup:
    """Objects of an episode: cubes and pads by colour, the goal, the colours of the instruction."""

    cubes: Sequence[str]
    pads: Sequence[str]
    goal: PlacementCfg
    phrases: Sequence[str]


def _pick_and_place(rng: np.random.Generator) -> _Setup:
    cube, pad = str(rng.choice(['red', 'green', 'blue'])), str(rng.choice(['yellow', 'purple']))
    phrases = [
        f'put the {cube} cube on the {pad} pad',
        f'pick up the {cube} block and place it on the {pad} square',
        f'move the {cube} cube to the {pad} mat',
        f'the {cube} cube belongs on the {pad} pad',
    ]
    goal = PlacementCfg(object=f'{cube}_cube', target=f'{pad}_pad', tolerance=PAD[0] / 2)
    return _Setup(('red', 'green', 'blue'), ('yellow', 'purple'), goal, phrases)


def _stack(rng: np.random.Generator) -> _Setup:
    upper, lower = (str(each) for each in rng.permutation(['red', 'green', 'blue'])[:2])
    phrases = [
        f'stack the {upper} cube on the {lower} cube',
        f'put the {upper} block on top of the {lower} one',
        f'build a tower with the {upper} cube on the {lower} cube',
        f'place {upper} on {lower}',
    ]
    goal = PlacementCfg(object=f'{upper}_cube', target=f'{lower}_cube', tolerance=EDGE / 2)
    return _Setup(('red', 'green', 'blue'), (), goal, phrases)


def _slide(rng: np.random.Generator) -> _Setup:
    cube, pad = str(rng.choice(['red', 'blue'])), 'yellow'
    phrases = [
        f'slide the {cube} cube onto the {pad} pad',
        f'push the {cube} block into the {pad} zone',
        f'without lifting it, move the {cube} cube to the {pad} square',
        f'shove the {cube} cube over to the {pad} area',
    ]
    goal = PlacementCfg(object=f'{cube}_cube', target=f'{pad}_pad', tolerance=PAD[0] / 2, highest=EDGE / 2)
    return _Setup(('red', 'blue'), (pad,), goal, phrases)


_TASKS: dict[str, tuple[str, Callable[[np.random.Generator], _Setup], int]] = {  # with the most steps
    'pick_and_place': ('put the red cube on the yellow pad', _pick_and_place, 300),
    'stack': ('stack the red cube on the green cube', _stack, 300),
    'slide': ('slide the red cube onto the yellow pad', _slide, 300),
}


def task_config(spec: EpisodeSpec) -> TaskCfg:
    """Return the task config of an episode."""
    _, make, max_steps = _TASKS[spec.task]
    rng = np.random.default_rng((zlib.crc32(spec.task.encode()), spec.number))
    own = np.random.default_rng((zlib.crc32(f'{spec.task} {spec.perturbation}'.encode()), spec.number))
    setup = make(rng)
    moved = spec.perturbation == 'object_pose'
    objects = _placed(setup, own if moved else rng, moved)
    if spec.perturbation == 'distractors':
        objects += _distractors(objects, own)
    colors = _TABLE_COLORS if spec.perturbation == 'texture' else (_TABLE_COLOR,)
    scenes = _LIGHTING if spec.perturbation == 'lighting' else (_SCENE,)
    phrase = 1 + spec.number % (len(setup.phrases) - 1) if spec.perturbation == 'instruction' else 0
    return TabletopTaskCfg(
        scene_asset_path=_of(scenes, spec.number),
        robots=[_robot(spec)],
        objects=[*objects, _table(_of(colors, spec.number))],
        metrics=[TaskSuccessMetricCfg()],
        suite_task=spec.task,
        perturbation=spec.perturbation,
        number=spec.number,
        instruction=setup.phrases[phrase],
        goal=setup.goal,
        max_steps=max_steps,
    )


def simulator(threads: int | None) -> SimConfig:
    """Return the simulation settings: 20 steps per second."""
    return SimConfig(physics_dt=_PHYSICS_DT, substeps=_SUBSTEPS, threads=threads)


def _of(choices: Sequence[ChoiceT], number: int) -> ChoiceT:
    """Return the choice that falls to an episode."""
    return choices[number % len(choices)]


def _robot(spec: EpisodeSpec) -> FrankaRobotCfg:
    in_base = arm_ik_cfg.update(reference='arm_base')
    joints = JointControllerCfg(name=ARM.joint_controller, joint_names=list(FRANKA_ARM_7))
    fronts = _FRONT_MOVED if spec.perturbation == 'camera' else (_FRONT,)
    front, centre = _of(fronts, spec.number)
    wrist = 0.07, 0.0, 0.0
    mounts = {
        'front': ('panda_link0/front', front, rotation_towards(centre, front)),
        'wrist': ('panda_hand/wrist', wrist, rotation_towards((0.02, 0.0, 0.14), wrist, up=(1.0, 0.0, 0.0))),
    }
    cameras: list[SensorCfg] = [
        MountedCameraCfg(
            name=name,
            prim_path=mounts[name][0],
            translation=mounts[name][1],
            orientation=tuple(to_quat(mounts[name][2]).tolist()),
            resolution=size,
            every=spec.every,
        )
        for name, size in spec.cameras.items()
    ]
    return FrankaRobotCfg(
        position=(0.0, 0.0, TABLE_HEIGHT), controllers=[in_base, joints, gripper_cfg], sensors=cameras
    )


def _table(color: tuple[float, float, float]) -> ObjectCfg:
    return StaticCubeCfg(
        name='table',
        prim_path='/table',
        position=(0.3, 0.0, TABLE_HEIGHT / 2),
        scale=(1.0, 1.2, TABLE_HEIGHT),
        color=color,
    )


def _cube(color: str, place: np.ndarray, turn: float) -> ObjectCfg:
    return DynamicCubeCfg(
        name=f'{color}_cube',
        prim_path=f'/{color}_cube',
        position=(*place.tolist(), TABLE_HEIGHT + EDGE / 2),
        orientation=(float(np.cos(turn / 2)), 0.0, 0.0, float(np.sin(turn / 2))),
        scale=(EDGE, EDGE, EDGE),
        color=COLORS[color],
        mass=0.08,
    )


def _pad(color: str, place: np.ndarray) -> ObjectCfg:
    position = (*place.tolist(), TABLE_HEIGHT + PAD[2] / 2)
    return VisualCubeCfg(
        name=f'{color}_pad', prim_path=f'/{color}_pad', position=position, scale=PAD, color=COLORS[color]
    )


def _placed(setup: _Setup, rng: np.random.Generator, moved: bool) -> list[ObjectCfg]:
    """Place cubes and pads at random, apart from each other."""
    region = _WIDE if moved else _REACH
    gaps = [_PAD_APART] * len(setup.pads) + [_APART] * len(setup.cubes)
    for _ in range(_TRIES):
        places = rng.uniform(*np.transpose(region), size=(len(gaps), 2))
        distances = np.linalg.norm(places[:, None] - places, axis=-1) + np.eye(len(gaps))
        if (distances >= np.maximum.outer(gaps, gaps)).all() and _is_free(setup, places):
            break
    else:
        raise AssertionError('there is no room for the objects')
    turns = rng.uniform(-_TURN, _TURN, len(setup.cubes)) * (1 + moved)
    pads = [_pad(color, place) for color, place in zip(setup.pads, places, strict=False)]
    cubes = zip(setup.cubes, places[len(pads) :], turns, strict=True)
    return pads + [_cube(color, place, turn) for color, place, turn in cubes]


def _is_free(setup: _Setup, places: np.ndarray) -> bool:
    """Return True if nothing stands between an object that must not be lifted and its target."""
    if setup.goal.highest is None:
        return True
    names = [f'{color}_pad' for color in setup.pads] + [f'{color}_cube' for color in setup.cubes]
    moved, target = names.index(setup.goal.object), names.index(setup.goal.target)
    others = [k for k in range(len(setup.pads), len(names)) if k != moved]
    way = np.linspace(places[moved], places[target], 10)
    return all(np.linalg.norm(way - places[k], axis=-1).min() >= _CLEAR for k in others)


def _distractors(objects: Sequence[ObjectCfg], rng: np.random.Generator) -> list[ObjectCfg]:
    """Place further cubes, whose colours no instruction names, apart from the others."""
    places = [each.position[:2] for each in objects]
    found: list[ObjectCfg] = []
    while len(found) < len(DISTRACTORS):
        place = rng.uniform(*np.transpose(_WIDE))
        if np.linalg.norm(np.subtract(places, place), axis=-1).min() >= _PAD_APART - 0.02:
            found.append(_cube(DISTRACTORS[len(found)], place, rng.uniform(-_TURN, _TURN)))
            places.append(tuple(place))
    return found


SUITE = Suite(
    name='InternUtopia/Tabletop',
    tasks={name: instruction for name, (instruction, _, _) in _TASKS.items()},
    perturbations=(NONE, 'object_pose', 'distractors', 'lighting', 'texture', 'camera', 'instruction'),
    episodes=50,
    cameras=('front', 'wrist'),
    arm=ARM,
    simulator=simulator,
    task_config=task_config,
    expert=expert,
)
"""The suite."""
