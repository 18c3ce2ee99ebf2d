"""Command markers: commanded goals and velocities as balls and arrows in images.

Goals are green. Of a velocity, the green arrow is what is commanded, the blue one how the base moves, and a green one
across it the yaw rate: to the left for a turn to the left.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from internutopia.core.runner.env_cameras import RobotCamera
from internutopia.core.runner.env_pictures import EnvMarkers
from internutopia.rendering.camera import Colour, Marker
from internutopia.rl.array_runner import ArrayRunner
from internutopia.rl.state import RobotState
from internutopia.rl.terms.registry import look_up_marker
from internutopia.util.arrays import to_host
from internutopia.util.rotations import yaw_of

Floats = NDArray[np.float64]

_COMMANDED: Colour = (0.1, 0.8, 0.2, 1.0)
_ACTUAL: Colour = (0.1, 0.4, 1.0, 1.0)
_BALL, _SHAFT = 0.06, 0.03  # radii, as shares of the robot's radius
_RADIUS, _LENGTH = 0.02, 0.25  # m, radius and length of an arrow over the ground, at least
_PER_SPEED = 0.8  # length of an arrow for 1 m/s or 1 rad/s, in radii of the robot
_SLOW = 0.02  # m/s, rad/s: shown as nothing
_HEAD = 0.75  # height of arrows above the robot's middle, in its radii


def command_markers(core: ArrayRunner, env_id: int, robot: RobotCamera) -> EnvMarkers:
    """Return markers of the current commands of the robot in an env; none for commands whose terms have no marker."""
    goals = command_goals(core, env_id, robot.ground)
    markers: list[Marker] = []
    for name, cfg in core.learning.commands.items():
        values = to_host(core.state.command(name)[env_id]).astype(np.float64)
        if name in goals:
            markers += _goal(goals[name], len(values) > 2, robot.radius)
        elif look_up_marker(cfg.term) == 'velocity':
            markers += _velocity(values, core.state, env_id, robot)
    return EnvMarkers(markers, list(goals.values()))


def command_goals(core: ArrayRunner, env_id: int, ground: float) -> dict[str, Floats]:
    """Return the points `(3,)` [m], env frame, that commands name, by command; those in a plane on the ground."""
    named = [name for name, cfg in core.learning.commands.items() if look_up_marker(cfg.term) == 'point']
    places = {name: to_host(core.state.command(name)[env_id]).astype(np.float64) for name in named}
    return {name: np.array([*place, ground][:3]) for name, place in places.items()}


def _goal(goal: Floats, in_space: bool, radius: float) -> list[Marker]:
    """Return a ball at the goal or, on the ground, an arrow that points at it from above."""
    if in_space:
        return [Marker(goal, _BALL * radius, _COMMANDED)]
    top = goal + [0.0, 0.0, max(radius, _LENGTH)]
    return [Marker(top, max(2 * _SHAFT * radius, _RADIUS), _COMMANDED, goal)]


def _velocity(command: Floats, state: RobotState, env_id: int, robot: RobotCamera) -> list[Marker]:
    start = robot.middle + [0.0, 0.0, _HEAD * robot.radius]
    yaw = float(yaw_of(to_host(state.base_orientation[env_id]).astype(np.float64)))
    heading = np.array([math.cos(yaw), math.sin(yaw), 0.0])
    left = np.array([-heading[1], heading[0], 0.0])
    moves = to_host(state.base_linear_velocity[env_id]).astype(np.float64) * [1.0, 1.0, 0.0]
    front = start + 0.5 * robot.radius * heading
    arrows = [
        (start, command[0] * heading + command[1] * left, _COMMANDED),
        (start + [0.0, 0.0, 3 * _SHAFT * robot.radius], moves, _ACTUAL),
        (front, command[2] * left, _COMMANDED),
    ]
    return [
        Marker(begin, _SHAFT * robot.radius, colour, begin + _PER_SPEED * robot.radius * way)
        for begin, way, colour in arrows
        if np.linalg.norm(way) > _SLOW
    ]
