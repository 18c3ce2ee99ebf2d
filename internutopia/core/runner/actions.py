"""What all robots are told in a step: checked as a whole before the first of them is commanded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.batched import BatchedRobot, Command
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.runner.base import Action
from internutopia.core.task.task import BaseTask
from internutopia.core.util import did_you_mean


@dataclass(frozen=True)
class BatchedActions:
    """Actions that were checked: for robots that serve all envs, for robots of one env, and what goes as it is."""

    fleets: list[tuple[BatchedRobot, list[Command]]]
    robots: list[tuple[BaseRobot, list[ArticulationAction]]]
    custom: list[tuple[BaseRobot, Any]]

    @property
    def form_only(self) -> bool:
        """Whether actions of the same form (see `BaseController.checks_form_only`) would have passed as well."""
        planned = [command for _, commands in self.fleets for command in commands]
        return not (self.robots or self.custom) and all(
            isinstance(command[0], BaseController) and command[0].checks_form_only() for command in planned
        )

    def run(self) -> None:
        """Command the robots."""
        for fleet, planned in self.fleets:
            fleet.apply(planned)
        for robot, planned in self.robots:
            robot.command([(control, ...) for control in planned])
        for robot, robot_action in self.custom:
            robot.apply_action(robot_action)


def validate_actions(actions: Mapping[int, tuple[Action, BaseTask]]) -> BatchedActions:
    """Check actions, each with the task that runs in its env, by env id. ValueError or KeyError for a bad one."""
    by_fleet: dict[BatchedRobot, list[tuple[int, Any]]] = {}
    single: list[tuple[BaseRobot, Any]] = []
    custom: list[tuple[BaseRobot, Any]] = []
    for env_id, (action, task) in actions.items():
        if action is None:
            continue
        if not isinstance(action, dict | Mapping):  # dict first: checked much faster
            raise ValueError(
                f'env {env_id}: expected {{robot name: {{controller name: action}}}} or None, got {action!r}'
            )
        for name, robot_action in action.items():
            robot = task.robots.get(name)
            if robot is None:
                raise KeyError(f'env {env_id} has no robot {name!r}; {did_you_mean(name, task.robots)}')
            if type(robot).apply_action is not BaseRobot.apply_action:
                custom.append((robot, robot_action))
            elif not isinstance(robot_action, dict | Mapping):
                raise ValueError(
                    f'env {env_id}, robot {name!r}: expected {{controller name: action}}, got {robot_action!r}'
                )
            elif robot.fleet is not None:
                by_fleet.setdefault(robot.fleet, []).append((env_id, robot_action))
            else:
                single.append((robot, robot_action))
    return BatchedActions(
        [(fleet, fleet.plan(robot_actions)) for fleet, robot_actions in by_fleet.items()],
        [(robot, robot.controls(robot_action)) for robot, robot_action in single],
        custom,
    )
