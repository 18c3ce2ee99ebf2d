"""Parts of scripted experts, which are shown where the objects are: to take, carry and move things with an arm.

Positions are in the frame of the arm's base.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.rotations import quat_from_yaw, quat_multiply, quat_rotate, wrap_angle, yaw_of
from internutopia_extension.configs.robots.franka import arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.robots.ridgeback_franka import move_by_speed_cfg
from internutopia_extension.configs.tasks import JointGoalCfg, PlacementCfg, TabletopTaskCfg

_DOWN = np.array([0.0, 1.0, 0.0, 0.0])  # the gripper points to the floor
_REACHED = 0.006  # m
_PATIENCE = 60  # steps, after which the next command follows in any case
ABOVE = 0.12  # m, above the place where an object is taken or put down
HIGH = 0.20  # m, on the way
_DROP = 0.003  # m, that an object falls when it is let go
_STRIDE = 0.008  # m, of the gripper in a step along a straight line or an arc
_GRIP = 0.025  # m, below the top of a tall object, where it is taken
_APART = 0.064  # m, between objects that are put into one place
_BEYOND = 0.015, 0.15  # m and rad, by which a part is moved further than it has to be
_HINGES = {'door': (0.034, 0.175, 0.0)}  # m, axes of hinges from the handles on them

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Command:
    """What the arm and the base do for a while.

    Attributes:
        position: of the gripper [m].
        heading: of the gripper [rad].
        fingers: `'open'` or `'close'`.
        steps: number of steps at least.
        waits: until the gripper is there.
        speeds: of the base: forward, left [m/s] and turn to the left [rad/s].
    """

    position: Vector
    heading: float
    fingers: str = 'open'
    steps: int = 1
    waits: bool = True
    speeds: tuple[float, float, float] = (0.0, 0.0, 0.0)


Plan = Generator[Command, Mapping[str, Any], None]
"""Commands in sequence; it is sent the observation in which each has ended."""
Part = Generator[Command, Mapping[str, Any], Mapping[str, Any]]
"""Commands of a part of a plan, which returns the last observation."""


class Following:
    """Actions that follow a plan; at its end the gripper stays where it is."""

    def __init__(self, task: TabletopTaskCfg, plan: Callable[[TabletopTaskCfg, Mapping[str, Any]], Plan]):
        self._task, self._make = task, plan
        self._plan: Plan | None = None
        self._steps = 0

    def __call__(self, obs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the next action."""
        if self._plan is None:
            self._plan = self._make(self._task, obs)
            self._command = next(self._plan)
        elif self._is_done(obs):
            try:
                self._command, self._steps = self._plan.send(obs), 0
            except StopIteration:
                pass
        self._steps += 1
        orientation = quat_multiply(quat_from_yaw(np.array(self._command.heading)), _DOWN)
        pose = [self._command.position.tolist(), orientation.tolist()]
        opening = 1.0 if self._command.fingers == 'open' else -1.0  # datasets have numbers, and no text
        action = {arm_ik_cfg.name: pose, gripper_cfg.name: [opening]}
        if move_by_speed_cfg.name in obs['controllers']:
            action[move_by_speed_cfg.name] = list(self._command.speeds)
        return action

    def _is_done(self, obs: Mapping[str, Any]) -> bool:
        command = self._command
        gripper = np.asarray(obs['controllers'][arm_ik_cfg.name]['eef_position'], np.float64)
        way = float(np.linalg.norm(gripper - command.position))
        return self._steps >= command.steps and (
            not command.waits or way < _REACHED or self._steps >= command.steps + _PATIENCE
        )


def handle(task: TabletopTaskCfg, index: int, obs: Mapping[str, Any]) -> Part:
    """Reach a goal that is within the reach of the arm."""
    goal = task.goals[index]
    if isinstance(goal, PlacementCfg):
        shared = [other for other, each in enumerate(task.goals) if getattr(each, 'target', None) == goal.target]
        obs = yield from _carry(task, goal, (shared.index(index) - (len(shared) - 1) / 2) * _APART, obs)
    elif isinstance(goal, JointGoalCfg):
        obs = yield from (_press if goal.object == 'console' else _move_part)(goal, obs)
    return obs


def _carry(task: TabletopTaskCfg, goal: PlacementCfg, aside: float, obs: Mapping[str, Any]) -> Part:
    """Take the object and put it down on its target, or slide it there if it must not be lifted."""
    taken, heading, obs = yield from take(task, goal, obs)
    if goal.highest is None:
        yield Command(taken + [0.0, 0.0, HIGH], heading, 'close')
        return (yield from put(task, goal, obs, taken[2] + HIGH, aside))
    place, _ = pose_of(obs, goal.target)
    place[2] = taken[2]
    yield from along(line(taken, place), heading)
    return (yield from _let_go(place, heading))


def take(
    task: TabletopTaskCfg, goal: PlacementCfg, obs: Mapping[str, Any]
) -> Generator[Command, Mapping[str, Any], tuple[Vector, float, Mapping[str, Any]]]:
    """Close the gripper around the object; returns its position and heading, and the last observation."""
    taken, heading = pose_of(obs, goal.object)
    taken = taken + _grip(task, goal)
    yield Command(taken + [0.0, 0.0, ABOVE], heading)
    yield Command(taken, heading, steps=4)
    obs = yield Command(taken, heading, 'close', steps=8)
    return taken, heading, obs


def put(task: TabletopTaskCfg, goal: PlacementCfg, obs: Mapping[str, Any], height: float, aside: float = 0.0) -> Part:
    """Bring the object that is held to its target, from above.

    Args:
        task: the task.
        goal: its goal.
        obs: the last observation.
        height: at which the gripper goes over the target [m].
        aside: where the object is put, from the middle of the target along its x axis [m].
    """
    place, turned = pose_of(obs, goal.target)
    edges = {each.name: each.scale[2] for each in task.objects}
    place = place + quat_rotate(quat_from_yaw(np.array(turned)), np.array([aside, 0.0, 0.0]))
    place += _grip(task, goal) + [0.0, 0.0, (edges[goal.object] + edges[goal.target]) / 2 + _DROP]
    over = np.append(place[:2], height)
    yield Command(over, turned, 'close', steps=4)
    yield from along(line(over, place), turned)
    return (yield from _let_go(place, turned))


def _grip(task: TabletopTaskCfg, goal: PlacementCfg) -> Vector:
    """Return where an object is taken, from its middle [m]."""
    (height,) = (each.scale[2] for each in task.objects if each.name == goal.object)
    return max(0.0, height / 2 - _GRIP) * np.array([0.0, 0.0, 1.0])


def _let_go(place: Vector, heading: float) -> Part:
    """Open the gripper and go up."""
    yield Command(place, heading, 'close', steps=6)
    yield Command(place, heading, 'open', steps=6)
    return (yield Command(place + [0.0, 0.0, ABOVE], heading))


def _press(goal: JointGoalCfg, obs: Mapping[str, Any]) -> Part:
    """Press the button down, with closed fingers."""
    top, heading = pose_of(obs, f'{goal.object}/{goal.joint}')
    yield Command(top + [0.0, 0.0, ABOVE], heading, 'close')
    yield from along(line(top + [0.0, 0.0, ABOVE], top), heading)
    return (yield Command(top - [0.0, 0.0, goal.range[0]], heading, 'close', steps=20))


def _move_part(goal: JointGoalCfg, obs: Mapping[str, Any]) -> Part:
    """Take the handle and move it along the way of its joint."""
    name = f'{goal.object}/{goal.joint}'
    pose = np.array(obs['task']['objects'][name], np.float64)
    handle, heading = pose[:3], float(yaw_of(pose[3:]))
    yield Command(handle + [0.0, 0.0, ABOVE], heading)
    yield Command(handle, heading, steps=4)
    yield Command(handle, heading, 'close', steps=8)
    hinge = _HINGES.get(goal.joint)
    low, high = goal.range
    now, beyond = obs['task']['joints'][name], _BEYOND[hinge is not None]
    way = (low + beyond if now < low else high - beyond) - now
    if hinge is None:
        points = line(handle, handle + quat_rotate(pose[3:], np.array([-way, 0.0, 0.0])))
        turned = np.full(len(points), heading)
    else:
        anchor = handle + quat_rotate(pose[3:], np.array(hinge))
        turned = heading - np.linspace(0.0, way, int(abs(way) * np.linalg.norm(hinge) / _STRIDE) + 2)
        points = np.stack([anchor + quat_rotate(quat_from_yaw(each - heading), handle - anchor) for each in turned])
    yield from along(points, turned)
    return (yield from _let_go(points[-1], float(turned[-1])))


def line(start: Vector, end: Vector) -> Vector:
    """Return points `(n, 3)` from a start, which is left out, to an end."""
    return np.linspace(start, end, int(np.linalg.norm(end - start) / _STRIDE) + 2)[1:]


def along(points: Vector, headings: float | Vector) -> Generator[Command, Mapping[str, Any], None]:
    """Move the closed gripper from point to point."""
    for point, heading in zip(points, np.broadcast_to(headings, len(points)), strict=True):
        yield Command(point, float(heading), 'close', waits=False)


def pose_of(obs: Mapping[str, Any], name: str) -> tuple[Vector, float]:
    """Return the position of an object `(3,)` and its heading, the smallest of the four that look the same."""
    pose = np.array(obs['task']['objects'][name], np.float64)
    return pose[:3], float(wrap_angle(yaw_of(pose[3:]) * 4) / 4)
