"""Tasks of suites in words, and their things: cubes, pegs, pads, bins and furniture by name, which ends in the kind.

Lengths in metres.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from internutopia.config import ObjectCfg
from internutopia.config.robot import SensorCfg
from internutopia.model.importers.transforms import to_quat
from internutopia.rendering.camera import rotation_towards
from internutopia.util.rotations import quat_from_yaw
from internutopia_extension.configs.joint_names import FRANKA_ARM_7
from internutopia_extension.configs.objects import DynamicCubeCfg, UsdObjCfg, VisualCubeCfg
from internutopia_extension.configs.sensors import MountedCameraCfg
from internutopia_extension.configs.tasks import JointGoalCfg, PlacementCfg
from internutopia_extension.robots.franka import FrankaRobot

ChoiceT = TypeVar('ChoiceT')
Size = tuple[float, float, float]
Region = tuple[tuple[float, float], tuple[float, float]]

_JOINTS = 0.15  # rad, by which joints of the arm are off at the start, at most
EDGE = 0.04  # of the cubes
TRIES = 10_000  # to place things apart from each other, at most
_MASS = 0.08  # kg, of cubes and pegs
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
CUBES = 'red', 'green', 'blue'
REACH = (0.36, -0.22), (0.60, 0.22)  # lowest and highest x and y of what an arm has to reach, from its base
MODELS = Path(__file__).parent / 'models'
LIGHTING = tuple(str(MODELS / f'scene_{name}.xml') for name in ('evening', 'lamp', 'noon'))


@dataclass(frozen=True)
class Kind:
    """Kind of object, and where it stands.

    Attributes:
        cfg: its config class: a box, or None for a model that stays where it is put.
        scale: edge lengths of the box; the size of the model.
        unseen: other ones, for the axis `unseen_objects`.
        apart: distance of its middle from those of others, at least.
        region: lowest and highest x and y.
        turn: angle by which it is turned, at most; with perturbed poses twice as much [rad].
        model: file of the model; of a box, of walls around it.
    """

    cfg: type[ObjectCfg] | None
    scale: Size
    unseen: Sequence[Size]
    apart: float = 0.10
    region: Region = REACH
    turn: float = 0.3
    model: str | None = None


_SIZES = (0.9, 0.9, 0.9), (1.15, 1.15, 1.15)
_BRICKS = (0.034, 0.050, 0.030), (0.050, 0.036, 0.050), (0.032, 0.032, 0.060)
_FURNITURE = (0.50, -0.12), (0.56, 0.12)
KINDS = {
    'cube': Kind(DynamicCubeCfg, (EDGE, EDGE, EDGE), _BRICKS),
    'block': Kind(DynamicCubeCfg, (EDGE, EDGE, EDGE), _BRICKS, 0.075, ((0.36, -0.12), (0.58, 0.12))),
    'peg': Kind(DynamicCubeCfg, (0.025, 0.025, 0.10), ((0.025, 0.025, 0.08), (0.025, 0.025, 0.12)), 0.14),
    'pad': Kind(VisualCubeCfg, PAD, (PAD,), 0.13, turn=0.0),
    'hole': Kind(VisualCubeCfg, (0.03, 0.03, 0.002), ((0.03, 0.03, 0.002),), 0.14, turn=0.2, model='socket'),
    'left': Kind(VisualCubeCfg, PAD, (PAD,), 0.14, ((0.40, 0.22), (0.52, 0.28)), 0.2, 'bin'),
    'right': Kind(VisualCubeCfg, PAD, (PAD,), 0.14, ((0.40, -0.28), (0.52, -0.22)), 0.2, 'bin'),
    'cabinet': Kind(None, (1.0, 1.0, 1.0), _SIZES, 0.27, _FURNITURE, 0.25, 'cabinet'),
    'cupboard': Kind(None, (1.0, 1.0, 1.0), _SIZES, 0.27, _FURNITURE, 0.25, 'cupboard'),
    'console': Kind(None, (1.0, 1.0, 1.0), _SIZES, 0.2, ((0.40, -0.15), (0.56, 0.15)), 0.3, 'console'),
}


def turned(heading: float) -> tuple[float, float, float, float]:
    """Return the orientation of a thing with a heading [rad]."""
    w, x, y, z = quat_from_yaw(np.asarray(heading)).tolist()
    return w, x, y, z


def free_place(
    rng: np.random.Generator,
    area: tuple[Sequence[float], Sequence[float]],
    others: Iterable[tuple[Any, float]],
    at: Callable[[float, float], Any] = lambda *place: np.array(place),
) -> np.ndarray:
    """Sample a place with the gap [m] of each other one to it.

    Args:
        rng: for the coordinates.
        area: lowest and highest coordinates.
        others: places and gaps.
        at: returns the place of coordinates; default: these themselves.
    """
    for _ in range(TRIES):
        place = at(*rng.uniform(*area))
        if all(math.dist(place, other) >= gap for other, gap in others):
            return place
    raise AssertionError('there is no room for another thing')


def things(name: str, place: np.ndarray, turn: float, height: float) -> list[ObjectCfg]:
    """Return the thing of a name, which its kind ends and its colour begins, and the walls around it.

    Args:
        name: such as `red_cube`.
        place: x and y.
        turn: heading [rad].
        height: of what it stands on.
    """
    color, _, kind_name = name.rpartition('_')
    kind = KINDS[kind_name]
    orientation = turned(turn)
    made: list[ObjectCfg] = []
    if kind.cfg is not None:
        made.append(
            kind.cfg.model_validate(
                {
                    'name': name,
                    'prim_path': f'/{name}',
                    'position': (*place.tolist(), height + kind.scale[2] / 2),
                    'orientation': orientation,
                    'scale': kind.scale,
                    'color': COLORS.get(color, (0.1, 0.1, 0.1)),
                    **({'mass': _MASS} if kind.cfg is DynamicCubeCfg else {}),
                }
            )
        )
    if kind.model is not None:
        own = name if kind.cfg is None else f'{name}_walls'
        made.append(
            UsdObjCfg(
                name=own,
                prim_path=f'/{own}',
                position=(*place.tolist(), height),
                orientation=orientation,
                usd_path=str(MODELS / f'{kind.model}.xml'),
                fixed=True,
            )
        )
    return made


def unseen(thing: ObjectCfg, number: int) -> ObjectCfg:
    """Return an object of another size, which stands where it stood."""
    kind = KINDS.get(thing.name.rpartition('_')[2])
    if kind is None:  # walls
        return thing
    scale = of(kind.unseen, number)
    x, y, z = thing.position
    return thing.update(scale=scale, position=(x, y, z + (scale[2] - kind.scale[2]) / 2 if kind.cfg else z))


def arm_cameras(sizes: Mapping[str, tuple[int, int]], link: str, place: Size, centre: Size) -> list[SensorCfg]:
    """Return cameras of a robot with a Franka arm, which render when a chunk of actions has ended.

    Args:
        sizes: width and height [pixels] by name: `front` or `wrist`.
        link: link that carries the camera `front`.
        place: where it is on the link.
        centre: where it looks.
    """
    wrist = 0.07, 0.0, 0.0
    mounts = {
        'front': (f'{link}/front', place, rotation_towards(centre, place)),
        'wrist': ('panda_hand/wrist', wrist, rotation_towards((0.02, 0.0, 0.14), wrist, up=(1.0, 0.0, 0.0))),
    }
    return [
        MountedCameraCfg(
            name=name,
            prim_path=mounts[name][0],
            translation=mounts[name][1],
            orientation=tuple(to_quat(mounts[name][2]).tolist()),
            resolution=size,
            every=1,
            after_actions=True,
        )
        for name, size in sizes.items()
    ]


def disturbed_home(rng: np.random.Generator) -> dict[str, float]:
    """Return positions of the arm's joints near its home pose [rad], by name."""
    home = np.array([FrankaRobot.home[joint] for joint in FRANKA_ARM_7])
    return dict(zip(FRANKA_ARM_7, (home + rng.uniform(-_JOINTS, _JOINTS, len(home))).tolist(), strict=True))


def of(choices: Sequence[ChoiceT], number: int) -> ChoiceT:
    """Return the choice that falls to an episode."""
    return choices[number % len(choices)]


@dataclass(frozen=True)
class SuiteTask:
    """Task, or one of several between which episodes choose; names in braces are those of `roles`.

    Attributes:
        objects: names, which end in their kinds and begin with their colours.
        phrases: instructions, the usual one first.
        goals: conditions of success.
        roles: what stands for a name, of which episodes choose one that no other role has.
    """

    objects: Sequence[str]
    phrases: Sequence[str]
    goals: Sequence[PlacementCfg | JointGoalCfg]
    roles: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def chosen(self, rng: np.random.Generator | None) -> SuiteTask:
        """Return the task with a choice for each role; None chooses the first ones."""
        names: dict[str, str] = {}
        for role, choices in self.roles.items():
            free = [each for each in choices if each not in names.values()]
            names[role] = free[0] if rng is None else str(rng.choice(free))
        goals = []
        for goal in self.goals:
            fields = goal.model_dump()
            named = {key: value.format(**names) if isinstance(value, str) else value for key, value in fields.items()}
            goals.append(type(goal).model_validate(named))
        phrases = [phrase.format(**names) for phrase in self.phrases]
        return SuiteTask([name.format(**names) for name in self.objects], phrases, goals)
