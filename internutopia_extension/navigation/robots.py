"""Robots configured for navigation, by name."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Literal

from internutopia.config import RobotCfg, SimConfig
from internutopia.util import did_you_mean
from internutopia_extension.configs import robots
from internutopia_extension.configs.sensors import CollisionSensorCfg, GPSCompassCfg
from internutopia_extension.learning_tasks.velocity import PHYSICS_DT, SUBSTEPS
from internutopia_extension.learning_tasks.walkers import WALKERS

Moves = Literal['discrete', 'flash']

_FLASH_DT = 1 / 200  # s, of a step in which nothing but the pose is set
_HEIGHTS = {'jetbot': 0.03} | {name: WALKERS[name].root_height for name in ('h1', 'g1', 'gr1', 'aliengo')}

ROBOTS = tuple(sorted(_HEIGHTS))
"""Names of the robots."""


def navigation_robot(name: str, moves: Moves = 'discrete', allow_sliding: bool | None = None) -> RobotCfg:
    """Return a built-in robot with discrete actions, at its standing height, with collision sensors.

    Args:
        name: one of `ROBOTS`.
        moves: whether it walks or drives (controller `move_by_discrete`), or is put from place to place
            (`move_by_flash`).
        allow_sliding: as of the configs of these controllers; None is their default.

    Raises:
        ValueError: there is no robot of that name.
    """
    if name not in _HEIGHTS:
        raise ValueError(f'no robot {name!r} is ready to navigate; {did_you_mean(name, ROBOTS)}')
    config = built_in_robot(name)
    controller = getattr(sys.modules[type(config).__module__], f'move_by_{moves}_cfg')
    if allow_sliding is not None:
        controller = controller.update(allow_sliding=allow_sliding)
    return config.update(
        position=(0.0, 0.0, _HEIGHTS[name]),
        controllers=[controller],
        sensors=[CollisionSensorCfg(), GPSCompassCfg()],
    )


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
