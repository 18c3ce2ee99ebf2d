"""Scenes of boxes whose free space and shortest paths can be worked out by hand."""

from __future__ import annotations

import mujoco

from internutopia.navigation import Agent, NavigationMap

AGENT = Agent(radius=0.2, height=1.0, step_height=0.2)


def box(x: tuple[float, float], y: tuple[float, float], z: tuple[float, float], **attributes: str) -> str:
    """A box between two corners [m]."""
    middle = ' '.join(f'{(low + high) / 2:.6g}' for low, high in (x, y, z))
    half = ' '.join(f'{(high - low) / 2:.6g}' for low, high in (x, y, z))
    more = ' '.join(f'{name}="{value}"' for name, value in attributes.items())
    return f'<geom type="box" pos="{middle}" size="{half}" {more}/>'


def room(width: float, depth: float, *inside: str, height: float = 2.0) -> str:
    """A room from the origin, the floor at z = 0, with walls of 0.1 m around it."""
    floor = box((-0.1, width + 0.1), (-0.1, depth + 0.1), (-0.1, 0.0))
    sides = [
        box((-0.1, 0.0), (-0.1, depth + 0.1), (0.0, height)),
        box((width, width + 0.1), (-0.1, depth + 0.1), (0.0, height)),
        box((0.0, width), (-0.1, 0.0), (0.0, height)),
        box((0.0, width), (depth, depth + 0.1), (0.0, height)),
    ]
    return ''.join([floor, *sides, *inside])


def map_of(world: str, agent: Agent = AGENT, cell: float = 0.05, movable: bool = True) -> NavigationMap:
    """The map of a world of geoms and bodies."""
    model = mujoco.MjModel.from_xml_string(f'<mujoco><worldbody>{world}</worldbody></mujoco>')
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return NavigationMap.of_model(model, data, agent, cell, movable=movable)
