"""Scripted expert of `InternUtopia/Tabletop`, which is shown where the objects are."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.rotations import quat_from_yaw, quat_multiply, wrap_angle, yaw_of
from internutopia_extension.configs.robots.franka import arm_ik_cfg, gripper_cfg
from internutopia_extension.configs.tasks import TabletopTaskCfg

_DOWN = np.array([0.0, 1.0, 0.0, 0.0])  # the gripper points to the floor
_REACHED = 0.006  # m
_PATIENCE = 60  # steps, after which the next command follows in any case
_ABOVE = 0.12  # m, above the place where an object is taken or put down
_HIGH = 0.20  # m, on the way
_DROP = 0.003  # m, that an object falls when it is let go
_SLIDE = 0.008  # m, of an object that must not be lifted, in a step


@dataclass(frozen=True)
class _Command:
    """Position [m], heading [rad], fingers, and the number of steps at least; `waits`: until the gripper is there."""

    position: NDArray[np.float64]
    heading: float
    fingers: str = 'open'
    steps: int = 1
    waits: bool = True


Plan = Generator[_Command, Mapping[str, Any], None]
"""Commands one after the other; it is sent the observation in which each has come to its end."""


def expert(task: TabletopTaskCfg) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the actions of an episode."""
    return _Following(task)


class _Following:
    """Actions that follow a plan; at its end the gripper stays where it is."""

    def __init__(self, task: TabletopTaskCfg):
        self._task = task
        self._plan: Plan | None = None
        self._steps = 0

    def __call__(self, obs: Mapping[str, Any]) -> dict[str, Any]:
        if self._plan is None:
            self._plan = _carry(self._task, obs)
            self._command = next(self._plan)
        elif self._is_done(obs):
            try:
                self._command, self._steps = self._plan.send(obs), 0
            except StopIteration:
                pass
        self._steps += 1
        orientation = quat_multiply(quat_from_yaw(np.array(self._command.heading)), _DOWN)
        pose = [self._command.position.tolist(), orientation.tolist()]
        return {arm_ik_cfg.name: pose, gripper_cfg.name: [self._command.fingers]}

    def _is_done(self, obs: Mapping[str, Any]) -> bool:
        command = self._command
        way = float(np.linalg.norm(_gripper(obs) - command.position))
        return self._steps >= command.steps and (
            not command.waits or way < _REACHED or self._steps >= command.steps + _PATIENCE
        )


def _carry(task: TabletopTaskCfg, obs: Mapping[str, Any]) -> Plan:
    """Take the object and put it down on its target, or slide it there if it must not be lifted."""
    cube, heading = _pose(obs, task.goal.object)
    yield _Command(cube + [0.0, 0.0, _ABOVE], heading)
    yield _Command(cube, heading, steps=4)
    obs = yield _Command(cube, heading, 'close', steps=8)
    place, turned = _pose(obs, task.goal.target)
    if task.goal.highest is not None:
        place[2] = cube[2]
        for share in np.arange(_SLIDE, np.linalg.norm(place - cube), _SLIDE) / np.linalg.norm(place - cube):
            yield _Command(cube + share * (place - cube), heading, 'close', waits=False)
        turned = heading
    else:
        edges = {each.name: each.scale[2] for each in task.objects}
        place[2] += (edges[task.goal.object] + edges[task.goal.target]) / 2 + _DROP
        yield _Command(cube + [0.0, 0.0, _HIGH], heading, 'close')
        yield _Command(np.append(place[:2], cube[2] + _HIGH), turned, 'close')
    yield _Command(place, turned, 'close', steps=6)
    yield _Command(place, turned, 'open', steps=6)
    yield _Command(place + [0.0, 0.0, _ABOVE], turned)


def _pose(obs: Mapping[str, Any], name: str) -> tuple[NDArray[np.float64], float]:
    """Return the position of an object `(3,)` and its heading, the smallest of the four that look the same."""
    pose = np.array(obs['task']['objects'][name], np.float64)
    return pose[:3], float(wrap_angle(yaw_of(pose[3:]) * 4) / 4)


def _gripper(obs: Mapping[str, Any]) -> NDArray[np.float64]:
    return np.asarray(obs['controllers'][arm_ik_cfg.name]['eef_position'], np.float64)
