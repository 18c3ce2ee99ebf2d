"""Robots configured for navigation, by name."""

from __future__ import annotations

import math
import sys
from types import ModuleType
from typing import Literal

import numpy as np

from internutopia.config import RobotCfg, SimConfig
from internutopia.model.importers.transforms import to_quat
from internutopia.navigation.agent import Agent
from internutopia.rendering.camera import rotation_towards
from internutopia.util import did_you_mean
from internutopia_extension.configs import robots
from internutopia_extension.configs.sensors import CollisionSensorCfg, GPSCompassCfg, MountedCameraCfg
from internutopia_extension.learning_tasks.velocity import PHYSICS_DT, SUBSTEPS
from internutopia_extension.learning_tasks.walkers import WALKERS
from internutopia_extension.navigation.nav_mapping import DRIVE, FOLLOW, TURN, NavMappingCfg

Moves = Literal['discrete', 'flash']

_FLASH_DT = 1 / 200  # s, of a step in which nothing but the pose is set
_BASES = {'aliengo': 'base', 'g1': 'pelvis', 'go2': 'base', 'gr1': 'base_link', 'h1': 'pelvis'}
_BASES |= {'h1_with_hand': 'pelvis', 'jetbot': 'chassis'}
_HEIGHTS = {'jetbot': 0.03} | {name: each.root_height for name, each in WALKERS.items()}

ROBOTS = tuple(_BASES)
"""Names of the robots."""


def navigation_robot(
    name: str,
    moves: Moves = 'discrete',
    allow_sliding: bool | None = None,
    mapping: NavMappingCfg | None = None,
    every: int | None = None,
) -> RobotCfg:
    """Return a built-in robot with discrete actions, at its standing height, with collision sensors.

    Args:
        name: one of `ROBOTS`.
        moves: whether it walks or drives (controller `move_by_discrete`), or is put from place to place
            (`move_by_flash`).
        allow_sliding: as of the configs of these controllers; None is their default.
        mapping: of a policy, whose cameras it carries, and whose actions it has controllers for.
        every: number of steps from one image to the next; None: images are captured whenever an action has ended.

    Raises:
        ValueError: there is no robot of that name.
    """
    if name not in ROBOTS:
        raise ValueError(f'no robot {name!r} is available for navigation; {did_you_mean(name, ROBOTS)}')
    config = built_in_robot(name)
    ready = vars(sys.modules[type(config).__module__])
    controller = ready[f'move_by_{moves}_cfg']
    if allow_sliding is not None:
        controller = controller.update(allow_sliding=allow_sliding)
    kind = 'discrete' if mapping is None else mapping.action.kind
    more = {'waypoints': [FOLLOW, TURN], 'velocities': [DRIVE]}.get(kind, [])
    return config.update(
        position=(0.0, 0.0, _HEIGHTS[name]),
        controllers=[controller, *(ready[f'{each}_cfg'] for each in more)],
        sensors=[CollisionSensorCfg(), GPSCompassCfg(), *([] if mapping is None else _cameras(name, mapping, every))],
    )


def _cameras(robot: str, mapping: NavMappingCfg, every: int | None) -> list[MountedCameraCfg]:
    """Return the cameras of a mapping, on the base of a robot."""
    cameras: dict[str, MountedCameraCfg] = {}
    radius = Agent.of(built_in_robot(robot)).radius
    for name, picture in mapping.observation.cameras.items():
        yaw, pitch = math.radians(picture.yaw), math.radians(picture.pitch)
        out = radius if picture.forward is None else picture.forward
        place = (out * math.cos(yaw), out * math.sin(yaw), picture.height - _HEIGHTS[robot])
        ahead = (math.cos(yaw) * math.cos(pitch), math.sin(yaw) * math.cos(pitch), -math.sin(pitch))
        width, height = picture.size
        camera = cameras.get(picture.camera) or MountedCameraCfg(
            name=picture.camera,
            prim_path=f'{_BASES[robot]}/{picture.camera}',
            translation=place,
            orientation=tuple(to_quat(rotation_towards(np.add(place, ahead), place)).tolist()),
            resolution=picture.size,
            rgba=False,
            fovy=2 * math.degrees(math.atan(math.tan(math.radians(picture.fov) / 2) * height / width)),
            every=every or 1,
            after_actions=every is None,
        )
        shown = {'rgba' if picture.shows == 'rgb' else 'depth': True}
        cameras[picture.camera] = camera.update(**shown, **({'depth': True} if name == mapping.action.picture else {}))
    return [*cameras.values()]


def built_in_robot(name: str) -> RobotCfg:
    """Return the built-in robot of that name or type, as in its config. ValueError with close matches for none."""
    modules = [value for value in vars(robots).values() if isinstance(value, ModuleType)]
    kinds = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    configs = [kind for kind in kinds if issubclass(kind, RobotCfg) and kind.model_fields['usd_path'].default]
    known = {str(kind.model_fields[key].default): kind for key in ('type', 'name') for kind in configs}
    if name not in known:
        raise ValueError(f'there is no built-in robot {name!r}; {did_you_mean(name, known)}')
    return known[name].model_validate({})


def simulation(moves: Moves, threads: int | None = None) -> SimConfig:
    """Return time steps for robots that move that way; None means a thread per core."""
    if moves == 'flash':
        return SimConfig(physics_dt=_FLASH_DT, threads=threads)
    return SimConfig(physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)
