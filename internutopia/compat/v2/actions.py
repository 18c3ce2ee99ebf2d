"""2.x behaviour of actions: robots and controllers that are not there are left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from internutopia.compat.v2.warner import Warner
from internutopia.core.robot.robot import BaseRobot
from internutopia.util import did_you_mean

if TYPE_CHECKING:
    from internutopia.core.task.task import BaseTask


class ActionFilter:
    """Filter that leaves names out of the actions of one run, with one warning for each."""

    def __init__(self) -> None:
        self._warner = Warner()

    def known_names(self, actions: Mapping[int, tuple[Any, BaseTask]]) -> dict[int, tuple[Any, BaseTask]]:
        """Return actions, each with the task of its env, by env id, without unknown robots and controllers.

        A robot whose class overrides `apply_action` gets its dict as it is.
        """
        return {env_id: (self._of_robots(env_id, action, task), task) for env_id, (action, task) in actions.items()}

    def _of_robots(self, env_id: int, action: Any, task: BaseTask) -> Any:
        if not isinstance(action, Mapping):
            return action
        for name in [name for name in action if name not in task.robots]:
            hint = did_you_mean(name, task.robots)
            self._warner.warn(f'env {env_id} has no robot {name!r}, its action is ignored; {hint}', name)
        return {
            name: self._of_controllers(env_id, name, robot_action, task.robots[name])
            for name, robot_action in action.items()
            if name in task.robots
        }

    def _of_controllers(self, env_id: int, name: str, action: Any, robot: BaseRobot) -> Any:
        if type(robot).apply_action is not BaseRobot.apply_action or not isinstance(action, Mapping):
            return action
        known = robot.get_controllers()
        for unknown in [each for each in action if each not in known]:
            where = f'env {env_id}, robot {name!r} has no controller {unknown!r}'
            self._warner.warn(f'{where}, its action is ignored; {did_you_mean(unknown, known)}', (name, unknown))
        return {each: value for each, value in action.items() if each in known}
