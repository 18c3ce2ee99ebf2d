"""Batched actions: what all robots are told in a step, checked as a whole before the first of them is commanded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.context import RobotBatch
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.runner.base import Action
from internutopia.core.task.task import BaseTask
from internutopia.util import did_you_mean
from internutopia.util.errors import EnvKeyError, EnvValueError

_MAPPINGS = (dict, Mapping)  # dict first: checked much faster


@dataclass(frozen=True)
class BatchedActions:
    """Checked actions: for batched robots, for robots of one env, and for robots that take them as they are."""

    batches: list[tuple[RobotBatch, list[Any]]]
    robots: list[tuple[BaseRobot, list[Callable[[], ArticulationAction]]]]
    custom: list[tuple[BaseRobot, Any]]

    @property
    def signature_checked(self) -> bool:
        """Whether actions of the same signature (see `BaseController.checks_signature_only`) would have passed, too."""
        commands = [command for _, each in self.batches for command in each]
        return not (self.robots or self.custom) and all(
            command.controller is not None and command.controller.checks_signature_only() for command in commands
        )

    def apply(self) -> None:
        """Command the robots."""
        for batch, commands in self.batches:
            batch.apply(commands)
        for robot, controls in self.robots:
            robot.command([(control(), ...) for control in controls])
        for robot, robot_action in self.custom:
            robot.apply_action(robot_action)


def validate_actions(actions: Mapping[int, tuple[Action, BaseTask]]) -> BatchedActions:
    """Check actions, each with the task that runs in its env, by env id.

    EnvValueError or EnvKeyError for a bad one; nothing is commanded yet.
    """
    by_batch: dict[RobotBatch, list[tuple[int, Any]]] = {}
    single: list[tuple[BaseRobot, Any]] = []
    custom: list[tuple[BaseRobot, Any]] = []
    for env_id, (action, task) in actions.items():
        if action is None:
            continue
        if not isinstance(action, _MAPPINGS):
            expected = '{robot name: {controller name: action}} or None'
            raise EnvValueError(env_id, f'env {env_id}: expected {expected}, got {action!r}')
        for name, robot_action in action.items():
            robot = task.robots.get(name)
            if robot is None:
                hint = did_you_mean(name, task.robots)
                raise EnvKeyError(env_id, f'env {env_id} has no robot {name!r}; {hint}')
            if type(robot).apply_action is not BaseRobot.apply_action:
                custom.append((robot, robot_action))
            elif not isinstance(robot_action, _MAPPINGS):
                where = f'env {env_id}, robot {name!r}'
                raise EnvValueError(env_id, f'{where}: expected {{controller name: action}}, got {robot_action!r}')
            elif robot.batch is not None:
                by_batch.setdefault(robot.batch, []).append((env_id, robot_action))
            else:
                single.append((robot, robot_action))
    return BatchedActions(
        [(batch, batch.validate(robot_actions)) for batch, robot_actions in by_batch.items()],
        [(robot, robot.controls(robot_action)) for robot, robot_action in single],
        custom,
    )
