"""Scene builder: scene spec of a `TaskCfg`, and the check that everything it names is implemented."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from internutopia.config import Config
from internutopia.config.robot import ControllerCfg, RobotCfg
from internutopia.config.task import ObjectCfg, TaskCfg
from internutopia.core.object import BaseObject
from internutopia.core.registry import look_up
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.sensor.sensor import BaseSensor, enabled_sensors
from internutopia.core.task.metric import BaseMetric
from internutopia.core.task.reward import BaseReward
from internutopia.core.task.task import BaseTask
from internutopia.engines.base import SceneHandle
from internutopia.model.spec import ObjectSpec, RobotSpec, SceneSpec


def scene_spec(config: TaskCfg) -> SceneSpec:
    """Return the spec of a task's scene: asset, robots and objects. ValueError for unsupported scales."""
    return SceneSpec(
        asset=str(config.scene_asset_path) if config.scene_asset_path else None,
        scale=config.scene_scale,
        position=config.scene_position,
        orientation=config.scene_orientation,
        decompose=config.decompose_scene,
        robots=tuple(
            replace(_robot_model(robot), prim_path=_below(config.robots_root_path, robot.prim_path))
            for robot in config.robots
        ),
        objects=tuple(
            spec for obj in config.objects if (spec := object_spec(obj, config.objects_root_path)) is not None
        ),
    )


def object_spec(config: ObjectCfg, root_path: str) -> ObjectSpec | None:
    """Return the spec of an object whose prim path is below `root_path` of its env; None if its class adds it."""
    model = look_up(BaseObject.objs, 'object', config.type).model(config)
    return None if model is None else replace(model, prim_path=_below(root_path, config.prim_path))


def check_sensors(config: TaskCfg, scene: SceneHandle) -> None:
    """Raise a ValueError, with robot and sensor, if a sensor cannot work in the scene of its task."""
    for robot in config.robots:
        for sensor in enabled_sensors(robot):
            try:
                look_up(BaseSensor.sensors, 'sensor', sensor.type).check(sensor, robot, scene)
            except ValueError as error:
                raise ValueError(f'robot {robot.name!r}, sensor {sensor.name!r}: {error}') from error


def _robot_model(config: RobotCfg) -> RobotSpec:
    """Return the model of a robot, equipped for its sensors."""
    model = look_up(BaseRobot.robots, 'robot', config.type).model(config)
    for sensor in enabled_sensors(config):
        model = look_up(BaseSensor.sensors, 'sensor', sensor.type).equip(sensor, model)
    return model


def _below(root_path: str, prim_path: str) -> str:
    """Return the prim path of a part of a task below its env; a leading slash in the config is optional."""
    return f'{root_path}/{prim_path.lstrip("/")}'


def check_implemented(config: Config) -> None:
    """Raise a ValueError, with the task, if a type in the config has no implementation."""
    checked: set[int] = set()  # configs are often shared by thousands of tasks
    for index, task in enumerate(config.task_configs):
        try:
            _check_task(task, checked)
        except ValueError as error:
            raise ValueError(f'task_configs[{index}]: {error}') from None


def _check_task(task: TaskCfg, checked: set[int]) -> None:
    look_up(BaseTask.tasks, 'task', task.type)
    for metric in task.metrics:
        look_up(BaseMetric.metrics, 'metric', metric.type)
    if task.reward is not None:
        look_up(BaseReward.rewards, 'reward', task.reward.reward_type)
    for obj in task.objects:
        look_up(BaseObject.objs, 'object', obj.type)
    for robot in task.robots:
        if id(robot) in checked:
            continue
        look_up(BaseRobot.robots, 'robot', robot.type)
        _check_controllers(robot.controllers or [], f'robot {robot.name!r}')
        for sensor in enabled_sensors(robot):
            _look_up_in(f'robot {robot.name!r}, sensor {sensor.name!r}', BaseSensor.sensors, 'sensor', sensor.type)
        checked.add(id(robot))


def _check_controllers(configs: Iterable[ControllerCfg], where: str) -> None:
    for config in configs:
        _look_up_in(f'{where}, controller {config.name!r}', BaseController.controllers, 'controller', config.type)
        _check_controllers(config.sub_controllers or [], f'{where}, controller {config.name!r}')


def _look_up_in(where: str, registry: dict, kind: str, name: str) -> None:
    try:
        look_up(registry, kind, name)
    except ValueError as error:
        raise ValueError(f'{where}: {error}') from None
