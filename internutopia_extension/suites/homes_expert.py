"""Scripted expert of `InternUtopia/Homes`, which has the map of the apartment and is shown where the objects are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from internutopia.util.rotations import wrap_angle, yaw_of
from internutopia_extension.configs.tasks import JointGoalCfg, NearCfg, PlacementCfg, TabletopTaskCfg
from internutopia_extension.suites.apartment import DOORWAY, TABLE, Site, site_of
from internutopia_extension.suites.scripted import HIGH, Command, Following, Part, Plan, Vector, handle, put, take
from internutopia_extension.tasks.navigation_task import map_of

_TUCKED = np.array([0.38, 0.0, 0.48])  # m, of the gripper on the way
_FRONT = 0.53  # m, of a table's edge from the middle of the base in front of it
_BACK = 0.3  # m, that the robot goes straight to a table and back
_ASIDE = 0.6  # m, of the robot from a piece of furniture that it is to go to
_LANE = 0.75  # m, before and behind a doorway, where the robot goes straight
_CORNER = 0.12  # m, before a corner of the way, where the next one is headed for
_FAR = 0.7  # m, from the end of a way, up to where the robot looks ahead
_SPEED, _TURN = 0.6, 1.2  # m/s, rad/s, at most
_GAIN, _TURN_GAIN = 1.5, 2.0  # 1/s
_THERE = 0.008, 0.01  # m, rad
_PATIENCE = 600  # steps of a way, at most
_SPACING = 0.1  # m, of places around a piece of furniture


def expert(task: TabletopTaskCfg) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the actions of an episode."""
    return Following(task, _plan)


def _plan(task: TabletopTaskCfg, obs: Mapping[str, Any]) -> Plan:
    """Drive to where each goal is, and reach it."""
    for index, goal in enumerate(task.goals):
        if isinstance(goal, NearCfg):
            obs = yield from _drive(_way(task, obs, _around(goal)), None, obs)
        elif isinstance(goal, JointGoalCfg):
            obs = yield from _go_to_table(task, site_of(task, goal.object), obs)
            obs = yield from handle(task, index, obs)
        else:
            obs = yield from _fetch(task, goal, obs)


def _fetch(task: TabletopTaskCfg, goal: PlacementCfg, obs: Mapping[str, Any]) -> Part:
    """Take an object from one table to another."""
    here, there = (site_of(task, name) for name in (goal.object, goal.target))
    obs = yield from _go_to_table(task, here, obs)
    taken, heading, obs = yield from take(task, goal, obs)
    yield Command(taken + [0.0, 0.0, HIGH], heading, 'close')
    obs = yield Command(_TUCKED, 0.0, 'close')
    obs = yield from _drive([_parked(here, _BACK)], here.heading, obs, 'close')
    obs = yield from _go_to_table(task, there, obs, 'close')
    return (yield from put(task, goal, obs, float(_TUCKED[2])))


def _go_to_table(task: TabletopTaskCfg, site: Site, obs: Mapping[str, Any], fingers: str = 'open') -> Part:
    """Drive to a place in front of a table, then straight to it."""
    before = _parked(site, _BACK)
    obs = yield from _drive(_way(task, obs, before[None]), site.heading, obs, fingers)
    return (yield from _drive([_parked(site, 0.0)], site.heading, obs, fingers))


def _parked(site: Site, back: float) -> Vector:
    """Return the place `(2,)` of the base at a table, or that far behind it."""
    return site.at(-TABLE[0] / 2 - _FRONT - back)


def _around(goal: NearCfg) -> Vector:
    """Return places `(n, 2)` around a piece of furniture."""
    (x, y), (ends_x, ends_y) = np.transpose(goal.place) + np.array([[-_ASIDE], [_ASIDE]])
    along_x, along_y = np.arange(x, ends_x, _SPACING), np.arange(y, ends_y, _SPACING)
    sides = [np.stack([along_x, np.full(len(along_x), side)], -1) for side in (y, ends_y)]
    sides += [np.stack([np.full(len(along_y), side), along_y], -1) for side in (x, ends_x)]
    return np.concatenate(sides)


def _way(task: TabletopTaskCfg, obs: Mapping[str, Any], goals: Vector) -> list[Vector]:
    """Return corners of the shortest way to the nearest of some places `(n, 2)`, straight through the doorway."""
    here = np.asarray(obs['position'], float)[:2]
    way = _shortest(task, here, goals)
    side = np.sign(way[-1][0] - DOORWAY[0])
    if side == np.sign(here[0] - DOORWAY[0]):
        return way
    before, behind = (np.add(DOORWAY, (off * side, 0.0)) for off in (-_LANE, _LANE))
    return [*_shortest(task, here, before[None]), behind, *_shortest(task, behind, way[-1][None])]


def _shortest(task: TabletopTaskCfg, here: Vector, goals: Vector) -> list[Vector]:
    found = map_of(task)
    height = found.agent.height / 2

    def at_height(places: Vector) -> Vector:
        return np.column_stack([places, np.full(len(places), height)])

    goals = at_height(goals)
    free = found.is_free(goals)
    path, _ = found.shortest_path(at_height(here[None])[0], goals[free] if free.any() else goals)
    return [*path[1:, :2]]


def _drive(way: list[Vector], heading: float | None, obs: Mapping[str, Any], fingers: str = 'open') -> Part:
    """Drive along a way, looking ahead, and at its end with a heading [rad]; None: with that which it has there."""
    corners = list(way)
    for _ in range(_PATIENCE):
        here, yaw = np.asarray(obs['position'], float)[:2], float(yaw_of(np.asarray(obs['orientation'])))
        while len(corners) > 1 and np.linalg.norm(corners[0] - here) < _CORNER:
            corners.pop(0)
        ahead = corners[0] - here
        left = float(np.linalg.norm(ahead)) + sum(
            float(np.linalg.norm(b - a)) for a, b in zip(corners[:-1], corners[1:], strict=True)
        )
        direction = math.atan2(ahead[1], ahead[0])
        wanted = direction if left > _FAR else yaw if heading is None else heading
        error = float(wrap_angle(np.array(wanted - yaw)))
        if left < _THERE[0] and abs(error) < _THERE[1]:
            break
        speed = min(_SPEED, _GAIN * left) * (max(0.0, math.cos(error)) ** 4 if left > _FAR else 1.0)
        turn = float(np.clip(_TURN_GAIN * error, -_TURN, _TURN))
        speeds = speed * math.cos(direction - yaw), speed * math.sin(direction - yaw), turn
        obs = yield Command(_TUCKED, 0.0, fingers, waits=False, speeds=speeds)
    return (yield Command(_TUCKED, 0.0, fingers, steps=4))
