"""All envs that run the same batched robot: one robot object, one object per batched controller, arrays over envs.

This is where the list front door meets the arrays: `plan` gathers the actions of many envs into one array per
controller, `apply` runs each controller once, `observation` hands out rows of what was observed for all envs at once.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.config.robot import RobotCfg
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.scene.scene import IScene
from internutopia.core.world.base import World

if TYPE_CHECKING:
    from internutopia.core.robot.controller import BaseController
    from internutopia.core.robot.robot import BaseRobot

# A batched controller with the envs and actions it is for, or an env's robot with the joint targets it gets
Command = tuple['BaseController', NDArray[np.intp], Any] | tuple['BaseRobot', ArticulationAction]


class BatchedRobot:
    """One batched robot class with one configuration (poses aside) in the envs that run it."""

    def __init__(
        self, cls: type[BaseRobot], config: RobotCfg, name: str, world: World, fleets: BatchedRobots, lead_env: int
    ):
        scene = BatchScene(world, fleets, lead_env)
        prim_path = scene.root_path + config.prim_path.removeprefix(f'/World/env_{lead_env}')
        scene.robot_paths[prim_path] = name
        self.name = name
        self.robot: BaseRobot = cls(config.model_copy(update={'name': name, 'prim_path': prim_path}), scene)
        self.robot.fleet = self
        self.robot.set_up_to_scene(scene)
        self.robot.post_reset()
        self.robots: dict[int, BaseRobot] = {}  # each env's own object
        self._rows: dict[int, dict[str, Any]] = {}

    def add(self, robot: BaseRobot) -> None:
        """A new episode starts in the env of this robot."""
        env_id = robot._scene.env_id
        self.robots[env_id] = robot
        self._rows.pop(env_id, None)
        env_ids = np.array([env_id])
        self.robot.reset(env_ids)
        for part in (*self.robot.controllers.values(), *self.robot.sensors.values()):
            part.reset(env_ids)

    def restart(self, mask: Any) -> None:
        """New episodes of the same robots start in the envs of a mask on the device, where nobody asks sensors."""
        self.robot.reset(mask)
        for controller in self.robot.controllers.values():
            controller.reset(mask)

    def forget(self, env_id: int) -> None:
        """The env was changed from outside: what was observed there before does not hold."""
        self._rows.pop(env_id, None)

    def plan(self, actions: Iterable[tuple[int, Mapping[str, Any]]]) -> list[Command]:
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
        for (_, name), (env_ids, controller_actions) in sorted(gathered.items(), key=lambda item: item[0][0]):
            commands += self._plan_one(name, env_ids, controller_actions)
        return commands

    def apply(self, commands: Iterable[Command]) -> None:
        """Run controllers on planned actions and set the joint targets they ask for."""
        controls: list[tuple[ArticulationAction, Any]] = []
        for command in commands:
            if len(command) == 3:
                controller, env_ids, action = command
                controls.append((controller.action_to_control(action, env_ids), env_ids))
            else:
                robot, control = command
                controls.append((control.with_env_axis(), np.array([robot._scene.env_id])))
        self.robot.command(controls)

    def observe(self, env_ids: NDArray[np.intp]) -> None:
        """Compute the observations of some envs, to be fetched by `observation`."""
        mine = [env_id for env_id in env_ids.tolist() if env_id in self.robots]
        if mine:
            ids = np.array(mine)
            for sensor in self.robot.sensors.values():
                sensor.update(ids)
            rows = split_rows(self.robot.get_obs(), ids)
            for env_id, row in zip(mine, rows, strict=True):
                robot = self.robots[env_id]
                for name, controller in robot.controllers.items():
                    row['controllers'][name] = own_values(controller.get_obs())
                for name, sensor in robot.sensors.items():
                    if name not in self.robot.sensors:
                        row['sensors'][name] = own_values(sensor.observe())
                self._rows[env_id] = row

    def observation(self, env_id: int) -> dict[str, Any]:
        """The observation of one env: the one computed for this step, or a fresh one if that was fetched already."""
        if env_id not in self._rows:
            self.observe(np.array([env_id]))
        return self._rows.pop(env_id)

    def _plan_one(self, name: str, env_ids: list[int], actions: list[Any]) -> list[Command]:
        controller = self.robot.controllers.get(name)
        if controller is None:
            robots = [self.robots[env_id] for env_id in env_ids]
            return [
                (robot, robot.controller(name).control(action)) for robot, action in zip(robots, actions, strict=True)
            ]
        try:
            return [(controller, np.array(env_ids), controller.parse_actions(actions))]
        except (ValueError, TypeError) as error:
            env_id = env_ids[getattr(error, 'index', 0)]
            raise ValueError(f'env {env_id}, robot {self.name!r}, controller {name!r}: {error}') from error


class BatchedRobots:
    """The fleets of an Env; one disappears with the last env that runs it."""

    def __init__(self, world: World):
        self._world = world
        self._fleets: dict[Any, BatchedRobot] = {}

    def join(self, cls: type[BaseRobot], config: RobotCfg, name: str, scene: IScene) -> BatchedRobot:
        """The fleet for a robot of one env; `add` the robot to it once it is set up."""
        view = self._world.articulation(name, scene.env_id)
        key = (cls, name, view, _fingerprint(config))
        if key not in self._fleets:
            self._fleets[key] = BatchedRobot(cls, config, name, self._world, self, scene.env_id)
        return self._fleets[key]

    def leave(self, env_id: int) -> None:
        """The episode of an env is over."""
        for key, fleet in list(self._fleets.items()):
            fleet.robots.pop(env_id, None)
            fleet._rows.pop(env_id, None)
            if not fleet.robots:  # also one whose first robot failed to start
                fleet.robot.cleanup()
                del self._fleets[key]

    def forget(self, env_id: int) -> None:
        """What was observed in an env before does not hold."""
        for fleet in self._fleets.values():
            fleet.forget(env_id)

    def observe(self, env_ids: NDArray[np.intp]) -> None:
        """Compute the observations of some envs in all fleets."""
        for fleet in self._fleets.values():
            fleet.observe(env_ids)


class BatchScene(IScene):
    """The scene that a batched robot sees: all envs; the structure of its robot is that of env `lead_env`."""

    def __init__(self, world: World, fleets: BatchedRobots, lead_env: int):
        super().__init__(world, ..., fleets)
        self._lead_env = lead_env

    @property
    def lead_env(self) -> int:
        """The first env of the fleet."""
        return self._lead_env

    def articulation(self, name: str, prim_path: str) -> Any:
        """The robot of that name in all envs."""
        from internutopia.core.robot.articulation import IArticulation

        return IArticulation(self.world.articulation(name, self._lead_env), self.world, ..., name, prim_path)


def split_rows(tree: Mapping[str, Any], env_ids: NDArray[np.intp]) -> list[dict[str, Any]]:
    """One dict per env from a tree of arrays `(env_num, ...)`: rows are copies, scalars plain Python values.

    Lists have one entry per env, whose sizes may differ.
    """
    columns: list[list[Any]] = []
    for value in tree.values():
        if isinstance(value, Mapping):
            columns.append(split_rows(value, env_ids))
        elif isinstance(value, list):
            columns.append([own_values(value[env_id]) for env_id in env_ids.tolist()])
        else:
            rows = np.asarray(value)[env_ids]
            columns.append(list(rows) if rows.ndim > 1 else rows.tolist())
    if not columns:
        return [{} for _ in range(len(env_ids))]
    keys = tuple(tree)
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def own_values(tree: Any) -> Any:
    """An observation of one env with arrays of its own, also where a class hands out its state; no arrays of rank 0."""
    if isinstance(tree, Mapping):
        return {key: own_values(value) for key, value in tree.items()}
    if isinstance(tree, np.ndarray) and tree.ndim:
        return tree.copy()
    return tree.item() if isinstance(tree, np.ndarray | np.generic) else tree


def _fingerprint(config: RobotCfg) -> Any:
    """Equal for configs that may share controllers and sensors: all but name and pose."""
    values = {name: value for name, value in config if name not in ('name', 'prim_path', 'position', 'orientation')}
    try:
        return pickle.dumps(values)
    except (pickle.PicklingError, AttributeError, TypeError):
        return id(config)
