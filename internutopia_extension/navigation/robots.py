"""Robots that are ready to navigate, by name."""

from __future__ import annotations

import importlib
from typing import Any, Literal

from internutopia.core.config import RobotCfg, SimConfig
from internutopia.core.util import did_you_mean
from internutopia_extension.configs.sensors import CollisionSensorCfg, GPSCompassCfg
from internutopia_extension.learning_tasks.velocity import PHYSICS_DT, SUBSTEPS
from internutopia_extension.learning_tasks.walkers import WALKERS

Moves = Literal['discrete', 'flash']

_FLASH_DT = 1 / 200  # s, of a step in which nothing but the pose is set
_HEIGHTS = {'jetbot': 0.03} | {name: WALKERS[name].root_height for name in ('h1', 'g1', 'gr1', 'aliengo')}

ROBOTS = tuple(sorted(_HEIGHTS))
"""Names of the robots."""


def navigation_robot(name: str, moves: Moves = 'discrete') -> RobotCfg:
    """A built-in robot that takes discrete actions, at the height at which it stands, with what senses collisions.

    Args:
        name: one of `ROBOTS`.
        moves: whether it walks or drives (controller `move_by_discrete`), or is put from place to place
            (`move_by_flash`).

    Raises:
        ValueError: there is no robot of that name.
    """
    if name not in _HEIGHTS:
        raise ValueError(f'no robot {name!r} is ready to navigate; {did_you_mean(name, ROBOTS)}')
    module = importlib.import_module(f'internutopia_extension.configs.robots.{name}')
    config: Any = next(
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, RobotCfg) and value.__module__ == module.__name__
    )
    return config(
        position=(0.0, 0.0, _HEIGHTS[name]),
        controllers=[getattr(module, f'move_by_{moves}_cfg')],
        sensors=[CollisionSensorCfg(), GPSCompassCfg()],
    )


def simulation(moves: Moves, threads: int | None = None) -> SimConfig:
    """Time steps for robots that move that way; None means a thread per core."""
    if moves == 'flash':
        return SimConfig(physics_dt=_FLASH_DT, threads=threads)
    return SimConfig(physics_dt=PHYSICS_DT, substeps=SUBSTEPS, threads=threads)
