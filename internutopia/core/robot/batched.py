"""Batched robots: one robot object for all envs that run the same robot, one object per batched controller.

This is where the list API meets the arrays: `validate_actions` checks the actions of all envs and gathers them into one
array per controller, `BatchedActions.apply` runs each controller once, `observation` returns rows of what was observed
for all envs at once.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.robot import RobotCfg
from internutopia.core.observations import ObservedRows, own_values
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import ActionError, BaseController
from internutopia.core.robot.env_scene import EnvScene
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.engines.base import World
from internutopia.util import did_you_mean
from internutopia.util.errors import EnvKeyError, EnvValueError
from internutopia.util.layouts import LayoutMismatchError, dict_columns

_MAPPINGS = (dict, Mapping)  # dict first: checked much faster


@dataclass(frozen=True)
class Command:
    """Checked actions of some envs `(m,)`.

    Attributes:
        env_ids: the envs.
        controller: the batched controller that they are for; None if `action` computes the joint targets of one env.
        action: `(m, ...)`, or see `BaseController.prepare_control`.
    """

    env_ids: NDArray[np.intp]
    controller: BaseController | None
    action: Any

    def control(self) -> ArticulationAction:
        """Return the joint targets to set."""
        if self.controller is None:
            return self.action().with_env_axis()
        return self.controller.action_to_control(self.action, self.env_ids)


class BatchedRobot:
    """One batched robot class with one configuration (poses aside) in the envs that run it."""

    def __init__(
        self, cls: type[BaseRobot], config: RobotCfg, name: str, world: World, batches: BatchedRobots, lead_env: int
    ):
        scene = EnvScene(world, ..., batches, lead_env)
        prim_path = scene.root_path + config.prim_path.removeprefix(f'/World/env_{lead_env}')
        scene.robot_paths[prim_path] = name
        self.name = name
        self.robot: BaseRobot = cls(config.model_copy(update={'name': name, 'prim_path': prim_path}), scene)
        self.robot.batch = self
        self.robot.set_up_to_scene(scene)
        self.robot.post_reset()
        self.robots: dict[int, BaseRobot] = {}  # each env's own object
        self._rows = ObservedRows({}, np.zeros(0, np.intp))
        self._unread: set[int] = set()  # envs whose rows have not been read

    def add(self, robot: BaseRobot) -> None:
        """Add the robot of an env where a new episode starts."""
        env_id = robot._scene.env_id
        self.robots[env_id] = robot
        self.reset(np.array([env_id]))

    def reset(self, env_ids: Any) -> None:
        """Begin new episodes of the same robots in these envs, on a device in those of a mask."""
        self.robot.reset(env_ids)
        for part in (*self.robot.own_controllers.values(), *self.robot.sensors.values()):
            part.reset(env_ids)

    def forget(self, env_id: int) -> None:
        """Discard the observation of an env, which was changed from outside."""
        self._unread.discard(env_id)

    def validate(self, actions: Iterable[tuple[int, Mapping[str, Any]]]) -> list[Command]:
        """Check actions and gather them by controller, keeping each env's order.

        KeyError for an unknown controller and ValueError for an action it cannot take, naming env, robot and
        controller. Nothing is commanded yet.
        """
        gathered: dict[tuple[int, str], tuple[list[int], list[Any]]] = {}
        for env_id, action in actions:
            for order, (name, controller_action) in enumerate(action.items()):
                entry = gathered.get((order, name))
                if entry is None:
                    entry = gathered[order, name] = ([], [])
                entry[0].append(env_id)
                entry[1].append(controller_action)
        commands: list[Command] = []
        for key in sorted(gathered):
            commands += self._validate_one(key[1], *gathered[key])
        return commands

    def validate_columns(self, env_ids: list[int], actions: Mapping[str, Sequence[Any]]) -> list[Command] | None:
        """Check actions of these envs, a column for each controller; errors as of `validate`.

        None if these are not controllers of all envs, or the robot takes actions as they are.
        """
        if (
            type(self.robot).apply_action is not BaseRobot.apply_action
            or not self.robot.own_controllers.keys() >= actions.keys()
            or not all(map(self.robots.__contains__, env_ids))
        ):
            return None
        commands: list[Command] = []
        for name, column in actions.items():
            commands += self._validate_one(name, env_ids, column)
        return commands

    def apply(self, commands: Iterable[Command]) -> None:
        """Run controllers on checked actions and set the joint targets that they return."""
        controls: list[tuple[ArticulationAction, Any]] = []
        for command in commands:
            controls.append((command.control(), command.env_ids))
        self.robot.command(controls)

    def observe(self, env_ids: NDArray[np.intp]) -> None:
        """Compute the observations of some envs, to be read by `observed` or `observation`."""
        mine = list(filter(self.robots.__contains__, env_ids.tolist()))
        if mine:
            rows = self._observe(env_ids if len(mine) == len(env_ids) else np.array(mine))
            self._rows, self._unread = rows, set(mine)

    def observed(self, env_id: int) -> ObservedRows:
        """Return the rows with the observation of one env: those of this step, or fresh ones if it was read already."""
        if env_id not in self._unread:
            return self._observe(np.array([env_id]))
        self._unread.remove(env_id)
        return self._rows

    def take_rows(self, env_ids: Sequence[int]) -> ObservedRows:
        """Return the rows of this step, for the observations of these envs, which have not been read."""
        self._unread.difference_update(env_ids)
        return self._rows

    def observation(self, env_id: int) -> dict[str, Any]:
        """Return the observation of one env, see `observed`, with what its robot has of its own."""
        row, robot = self.observed(env_id).of(env_id), self.robots[env_id]
        for name, controller in robot.own_controllers.items():
            row['controllers'][name] = own_values(controller.get_obs())
        for name, sensor in robot.sensors.items():
            if name not in self.robot.sensors:
                row['sensors'][name] = own_values(sensor.observe())
        return row

    def _observe(self, env_ids: NDArray[np.intp]) -> ObservedRows:
        for sensor in self.robot.sensors.values():
            sensor.update(env_ids)
        return ObservedRows(self.robot.get_obs(), env_ids)

    def _validate_one(self, name: str, env_ids: list[int], actions: Any) -> list[Command]:
        controller = self.robot.own_controllers.get(name)
        if controller is None:
            return [
                Command(np.array([env_id]), None, self.robots[env_id].controller(name).prepare_control(action))
                for env_id, action in zip(env_ids, actions, strict=True)
            ]
        try:
            return [Command(np.array(env_ids), controller, controller.parse_actions(actions))]
        except (ValueError, TypeError) as error:
            env_id = env_ids[error.index if isinstance(error, ActionError) else 0]
            raise EnvValueError(env_id, f'env {env_id}, robot {self.name!r}, controller {name!r}: {error}') from error


class BatchedRobots:
    """The batched robots of a world; one disappears with the last env that runs it."""

    def __init__(self, world: World):
        self._world = world
        self._batches: dict[Any, BatchedRobot] = {}

    def join(self, robot: BaseRobot, name: str, scene: IScene) -> BatchedRobot:
        """Return the batch for a robot of one env; `add` the robot to it once it is set up."""
        cls, config = type(robot), robot.config
        try:  # those that differ in name and pose alone share controllers and sensors
            same = pickle.dumps(dict(config) | dict.fromkeys(('name', 'prim_path', 'position', 'orientation')))
        except (pickle.PicklingError, AttributeError, TypeError):
            same = id(config)
        key = (cls, name, robot.articulation.view, same)
        if key not in self._batches:
            self._batches[key] = BatchedRobot(cls, config, name, self._world, self, scene.env_id)
        return self._batches[key]

    def leave(self, env_id: int) -> None:
        """Remove the robots of an env whose episode is over."""
        for key, batch in list(self._batches.items()):
            batch.robots.pop(env_id, None)
            batch.forget(env_id)
            if not batch.robots:  # also one whose first robot failed to start
                batch.robot.cleanup()
                del self._batches[key]

    def validate_columns(self, env_ids: list[int], actions: Mapping[str, Mapping[str, Any]]) -> BatchedActions | None:
        """Check actions that name the same robots and controllers in all of these envs, a column for each controller.

        None if a robot is not the same in all envs or takes no columns: `validate_actions` checks them then.
        """
        by_name: dict[str, list[BatchedRobot]] = {}
        for batch in self._batches.values():
            by_name.setdefault(batch.name, []).append(batch)
        found: list[BatchedRobot] = []
        for name in actions:
            batches = by_name.get(name, ())
            if len(batches) != 1:
                return None
            found += batches
        validated = BatchedActions([], [], [])
        for batch, of_robot in zip(found, actions.values(), strict=True):
            commands = batch.validate_columns(env_ids, of_robot)
            if commands is None:
                return None
            validated.batches.append((batch, commands))
        return validated

    def restart(self, env_ids: Sequence[int]) -> None:
        """New episodes start in envs that keep their robots."""
        for batch in self._batches.values():
            if own := list(filter(batch.robots.__contains__, env_ids)):
                batch.reset(np.array(own))

    def forget(self, env_id: int) -> None:
        """Discard the observations of an env."""
        for batch in self._batches.values():
            batch.forget(env_id)

    def observe(self, env_ids: NDArray[np.intp]) -> None:
        """Compute the observations of some envs in all of them."""
        for batch in self._batches.values():
            batch.observe(env_ids)

    def find_stuck(self) -> dict[int, list[str]]:
        """Return the names of the robots that stand still under a moving command, by env id."""
        found: dict[int, list[str]] = {}
        for batch in self._batches.values():
            for env_id in np.flatnonzero(batch.robot.find_stuck()).tolist():
                if env_id in batch.robots:
                    found.setdefault(env_id, []).append(batch.name)
        return found


@dataclass(frozen=True)
class BatchedActions:
    """Checked actions: for batched robots, for robots of one env, and for robots that take them as they are."""

    batches: list[tuple[BatchedRobot, list[Any]]]
    robots: list[tuple[BaseRobot, list[Callable[[], ArticulationAction]]]]
    custom: list[tuple[BaseRobot, Any]]

    @property
    def signature_checked(self) -> bool:
        """True if actions of the same signature (see `BaseController.checks_signature_only`) would have passed, too."""
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


def columns_of_actions(actions: Sequence[Any]) -> dict[str, dict[str, Sequence[Any]]] | None:
    """Return the actions of some envs as a column for each robot and controller.

    None if they do not name the same ones, in the same order.
    """
    first = actions[0] if actions else None
    if type(first) is not dict or not {dict}.issuperset(map(type, first.values())):
        return None
    columns: dict[str, dict[str, Sequence[Any]]] = {}
    try:
        for (name, of_robot), rows in zip(first.items(), dict_columns(dict, tuple(first), actions), strict=True):
            columns[name] = dict(zip(of_robot, dict_columns(dict, tuple(of_robot), rows), strict=True))
    except LayoutMismatchError:
        return None
    return columns


def validate_actions(actions: Mapping[int, tuple[Any, Mapping[str, BaseRobot]]]) -> BatchedActions:
    """Check actions, each with the robots of its env by name, by env id.

    EnvValueError or EnvKeyError for a bad one; nothing is commanded yet.
    """
    by_batch: dict[BatchedRobot, list[tuple[int, Any]]] = {}
    single: list[tuple[BaseRobot, Any]] = []
    custom: list[tuple[BaseRobot, Any]] = []
    for env_id, (action, robots) in actions.items():
        if action is None:
            continue
        if not isinstance(action, _MAPPINGS):
            expected = '{robot name: {controller name: action}} or None'
            raise EnvValueError(env_id, f'env {env_id}: expected {expected}, got {action!r}')
        for name, robot_action in action.items():
            robot = robots.get(name)
            if robot is None:
                hint = did_you_mean(name, robots)
                raise EnvKeyError(env_id, f'env {env_id} has no robot {name!r}; {hint}')
            if type(robot).apply_action is not BaseRobot.apply_action:
                custom.append((robot, robot_action))
            elif not isinstance(robot_action, _MAPPINGS):
                where = f'env {env_id}, robot {name!r}'
                raise EnvValueError(env_id, f'{where}: expected {{controller name: action}}, got {robot_action!r}')
            elif isinstance(robot.batch, BatchedRobot):
                by_batch.setdefault(robot.batch, []).append((env_id, robot_action))
            else:
                single.append((robot, robot_action))
    validated = BatchedActions([], [], custom)
    for batch, robot_actions in by_batch.items():
        validated.batches.append((batch, batch.validate(robot_actions)))
    for robot, robot_action in single:
        validated.robots.append((robot, robot.controls(robot_action)))
    return validated
