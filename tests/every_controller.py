"""Every registered controller on every robot that it is ready made for, and the corners of its action space.

A controller that is added to the package is found here: in the ready-made configs beside those of robots, or it has to
be given a robot in `_ON_OTHER_ROBOTS`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from multiprocessing.util import get_temp_dir
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from markers import slow_but
from numpy.typing import NDArray
from policy_files import write_onnx

from internutopia.config import Config, ControllerCfg, RobotCfg, SimConfig
from internutopia.config.learning import LearningCfg
from internutopia.core.robot.controller import BaseController
from internutopia.core.vec_env import Env
from internutopia.engines.views import LARGEST_NUMBER
from internutopia.rl.policy import TaskPolicyMetadata, write_metadata
from internutopia_extension import import_extensions
from internutopia_extension.configs import robots
from internutopia_extension.configs.controllers import (
    ActuatorControllerCfg,
    ChunkControllerCfg,
    LearnedControllerCfg,
    MoveBySpeedControllerCfg,
    RecoverControllerCfg,
)
from internutopia_extension.configs.robots import h1
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg

import_extensions()

_MOTORS = """
<mujoco>
  <worldbody>
    <body name="swing"><freejoint/><geom size="0.1"/>
      <body pos="0.2 0 0"><joint name="pan" axis="0 0 1"/><geom size="0.05"/>
        <body pos="0.1 0 0"><joint name="tilt" axis="0 1 0"/><geom size="0.05"/></body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="pan" ctrlrange="-0.2 0.1"/><motor joint="tilt" ctrlrange="0 0.1"/></actuator>
</mujoco>
"""
_FLOOR = '<mujoco><worldbody><geom type="plane" size="20 20 0.1"/></worldbody></mujoco>'
_HEIGHT = 1.0  # m, where robots start
_SMALL = ('jetbot', 'franka', 'motors')  # robots that are quick to step


def _walking(config: ControllerCfg) -> MoveBySpeedControllerCfg:
    fields = config.model_dump() | {'name': 'walk', 'type': 'MoveBySpeedController'}
    return MoveBySpeedControllerCfg.model_validate(fields)


def _learned() -> LearnedControllerCfg:
    """A policy that turns both motors as it is commanded, by the controller of actuators."""
    file = Path(get_temp_dir()) / 'motors.onnx'
    rng = np.random.default_rng(0)
    write_onnx(file, [(rng.normal(0.0, 0.1, (4, 2)).astype(np.float32), np.zeros(2, np.float32))])
    metadata = {
        'robot': 'GenericRobot',
        'step_dt': 0.05,
        'controller': 'ActuatorController',
        'offset': [-0.05, 0.05],
        'scale': [0.15, 0.05],
        'low': [-1.0, -1.0],
        'high': [1.0, 1.0],
        'observations': [{'term': 'command', 'params': {'name': 'turn'}}, {'term': 'last_action'}],
        'commands': {'turn': 2},
    }
    write_metadata(file, TaskPolicyMetadata.model_validate(metadata))
    return LearnedControllerCfg(
        name='learned', policy_weights_path=str(file), sub_controllers=[ActuatorControllerCfg()]
    )


_ON_OTHER_ROBOTS: dict[str, tuple[type[RobotCfg], list[ControllerCfg]]] = {
    'motors': (
        GenericRobotCfg,
        [
            ActuatorControllerCfg(),
            ChunkControllerCfg(name='chunk'),
            RecoverControllerCfg(name='recover', recover_height=0.5),
            _learned(),
        ],
    ),
    'h1': (h1.H1RobotCfg, [_walking(h1.move_by_speed_cfg)]),
}


def registered() -> set[str]:
    """Types of the controllers of the package."""
    classes = ((name, cls.__module__) for name, cls in BaseController.controllers.items())
    return {name for name, module in classes if module.startswith(('internutopia.core', 'internutopia_extension'))}


def _ready_made() -> Iterator[tuple[str, type[RobotCfg], list[ControllerCfg]]]:
    """Names of robots, their configs and those of the controllers beside them."""
    for each in pkgutil.iter_modules(robots.__path__):
        module = importlib.import_module(f'{robots.__name__}.{each.name}')
        values = list(vars(module).values())
        own = [v for v in values if isinstance(v, type) and v.__module__ == module.__name__ and issubclass(v, RobotCfg)]
        controllers = [value for value in values if isinstance(value, ControllerCfg) and _runs(value)]
        for robot in own if controllers else []:
            yield each.name, robot, controllers
    for name, (robot, controllers) in _ON_OTHER_ROBOTS.items():
        yield name, robot, controllers


def _runs(config: ControllerCfg) -> bool:
    """Whether a controller and those below it are implemented, and not for Isaac Sim alone."""
    return config.type in registered() and all(_runs(sub) for sub in config.sub_controllers or [])


CONTROLLERS: dict[str, tuple[type[RobotCfg], ControllerCfg]] = {
    f'{name}-{config.name}': (robot, config) for name, robot, configs in _ready_made() for config in configs
}
"""Robot and controller, by `robot-controller`."""


def quick() -> list[str]:
    """One controller of each type, on the smallest of the robots that have it."""
    names = sorted(CONTROLLERS, key=lambda name: (not name.startswith(_SMALL), not name.startswith('h1-')))
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(CONTROLLERS[name][1].type, name)
    return list(first.values())


EVERY = slow_but(*quick(), of=CONTROLLERS)
"""All names of `CONTROLLERS`, as parameters of a test."""


def config_of(name: str, folder: Any, env_num: int, robot_type: str | None = None) -> tuple[Config, str, str]:
    """A run of robots that have one controller, and the names of robot and controller."""
    robot, controller = CONTROLLERS[name]
    model, floor = folder / 'motors.xml', folder / 'floor.xml'
    model.write_text(_MOTORS)
    floor.write_text(_FLOOR)
    fields: dict[str, Any] = {'position': (0.0, 0.0, _HEIGHT), 'controllers': [controller]}
    if robot is GenericRobotCfg:
        fields['usd_path'] = str(model)
    if robot_type is not None:
        fields['type'] = robot_type
    robot_cfg = robot(**fields)
    learning = {'action': {'controller': controller.name}, 'observations': [{'term': 'joint_positions'}]}
    task = SingleInferenceTaskCfg(
        scene_asset_path=str(floor), robots=[robot_cfg], learning=LearningCfg.model_validate(learning)
    )
    simulator = SimConfig(physics_dt='1/200', substeps=4, threads=1)
    config = Config(
        simulator=simulator,
        env_num=env_num,
        metrics_save_path='none',
        task_configs=[task] * env_num,
        episode_order='cycle',
    )
    return config, robot_cfg.name, controller.name


def space_of(env: Env, robot: str, controller: str) -> Box:
    """The space of what a controller takes."""
    space = env.action_space(0, robot, controller)
    assert isinstance(space, Box)
    return space


def corners(box: Box) -> list[NDArray[Any]]:
    """Actions within and beyond a space, of its shape: its corners, tiny, huge and of several types."""
    low, high, zeros = box.low, box.high, np.zeros(box.shape)
    found = [zeros, -zeros, low, high, 0.5 * low + 0.5 * high]
    for bound in (low, high):  # each beside zeros
        for index in np.ndindex(*low.shape):
            found.append(zeros.copy())
            found[-1][index] = bound[index]
    sizes = (1e-45, 1e-310, 1e-30, 1e-16, 1e-7, 1e3, 1e6, 1e9, LARGEST_NUMBER, 1.1e10, 1e19, 1e25, 1e300)
    found += [zeros + sign * size for sign in (1, -1) for size in (*sizes, np.finfo(np.float32).max)]
    found += [zeros + value for value in (np.nan, np.inf, -np.inf)]
    found += [np.ones(low.shape, kind) for kind in (np.float32, np.float16, np.int64, np.int8, np.uint8, bool)]
    return found


def is_taken(action: NDArray[Any]) -> bool:
    """Whether a controller has to take an action of the shape of its space."""
    with np.errstate(over='ignore'):
        return bool((np.abs(action.astype(np.float32)) <= LARGEST_NUMBER).all())
