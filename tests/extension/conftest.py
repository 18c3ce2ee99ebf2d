"""Built-in robots with all their controllers, and envs of built-in tasks on a floor."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from internutopia.config import RobotCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.vec_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import (
    ActuatorControllerCfg,
    FlashControllerCfg,
    JointControllerCfg,
    RecoverControllerCfg,
)
from internutopia_extension.configs.joint_names import H1_GYM_19
from internutopia_extension.configs.robots import h1, jetbot
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.robots.legged import H1Robot

import_extensions()

# Two links that turn about the vertical: no gravity on the joints, so that it is easy to tell what a drive does to them
SWING_ARM = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 1"><geom size="0.05" mass="1"/>
      <body name="upper"><joint name="shoulder" axis="0 0 1" range="-60 120" armature="0.01"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.2"/>
        <body name="lower" pos="0.3 0 0"><joint name="elbow" axis="0 0 1" armature="0.01"/>
          <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.2"/>
        </body>
      </body>
    </body>
  </worldbody>
  <contact><exclude body1="base" body2="upper"/><exclude body1="upper" body2="lower"/></contact>
  {actuators}
</mujoco>
"""
MOTORS = """
  <actuator>
    <motor name="swing" joint="shoulder" ctrlrange="-0.5 0.5"/>
    <motor name="bend" joint="elbow" gear="2"/>
  </actuator>
"""

# a wall across the way of a puck, steps that it can take, and a ledge that it cannot
COURSE = """
<worldbody>
  <geom type="box" size="5 14 0.1" pos="0 0 -0.1"/>
  <geom type="box" size="0.05 1 0.5" pos="1.1 0 0.5"/>
  <geom type="box" size="0.5 0.5 0.05" pos="0.8 5 0.05"/>
  <geom type="box" size="0.25 0.5 0.1" pos="1.05 5 0.1"/>
  <geom type="box" size="0.5 0.5 0.4" pos="0.8 -5 0.4"/>
</worldbody>"""
PUCK = """
<worldbody><body name="puck"><freejoint/>
  <geom type="cylinder" size="0.2 0.25" mass="5"/>
  <body name="flag" pos="0 0 0.25"><joint name="flag" axis="0 0 1"/>
    <geom type="box" size="0.1 0.01 0.05" mass="0.1"/>
  </body>
</body></worldbody>"""

# Every robot a second time, as a subclass that is not batched: one object per env
for _name in ('JetbotRobot', 'H1Robot', 'GenericRobot'):
    BaseRobot.register(f'PerEnv{_name}')(type(f'PerEnv{_name}', (BaseRobot.robots[_name],), {}))


@pytest.fixture(scope='session')
def h1_policy(write_policy: Callable[..., str]) -> str:
    """A policy of H1's legs that bends them a little by its commands and by how H1 leans, and falls in the end."""
    legs = [joint for joint in H1_GYM_19 if not any(part in joint for part in ('torso', 'shoulder', 'elbow'))]
    return write_policy(
        [(np.random.default_rng(0).uniform(-0.1, 0.1, (6, len(legs))), np.zeros(len(legs)))],
        joint_names=legs,
        offset=[H1Robot.home.get(joint, 0.0) for joint in legs],
        observations=[{'term': 'command', 'params': {'name': 'speed'}}, {'term': 'projected_gravity'}],
    )


@pytest.fixture(scope='session')
def builtin_robots(tmp_path_factory: pytest.TempPathFactory, h1_policy: str) -> dict[str, RobotCfg]:
    """Robot configs by name, with all controllers they can have."""
    folder: Path = tmp_path_factory.mktemp('robots')
    for name, actuators in (('arm', ''), ('motor_arm', MOTORS)):
        (folder / f'{name}.xml').write_text(SWING_ARM.format(actuators=actuators))
    joints = JointControllerCfg(name='joints', joint_names=['elbow', 'shoulder'])
    recover = RecoverControllerCfg(name='recover', recover_height=0.5)
    jetbot_controllers = ('move_by_speed', 'move_to_point', 'move_along_path', 'rotate')
    walk = h1.move_by_speed_cfg.update(policy_weights_path=h1_policy)
    to_point = h1.move_to_point_cfg.update(sub_controllers=[walk])
    along_path = h1.move_along_path_cfg.update(sub_controllers=[to_point])
    turn = h1.rotate_cfg.update(sub_controllers=[walk])
    ahead = jetbot.move_along_path_cfg.update(name='move_along_path_ahead', look_ahead=0.2)
    return {
        'jetbot': jetbot.JetbotRobotCfg(
            position=(0.0, 0.0, 0.03),
            controllers=[*(getattr(jetbot, f'{name}_cfg') for name in jetbot_controllers), ahead],
        ),
        'h1': h1.H1RobotCfg(
            position=(0.0, 0.0, 0.99),
            controllers=[h1.joint_controller, walk, to_point, along_path, turn, h1.recover_cfg],
        ),
        'arm': GenericRobotCfg(
            name='arm',
            usd_path=str(folder / 'arm.xml'),
            controllers=[joints, recover],
            initial_joint_positions={'shoulder': 0.5},
        ),
        'motor_arm': GenericRobotCfg(
            name='motor_arm',
            usd_path=str(folder / 'motor_arm.xml'),
            controllers=[ActuatorControllerCfg(), recover],
            initial_joint_positions={'shoulder': 0.5},
        ),
    }


@pytest.fixture(scope='session')
def make_builtin(builtin_robots: dict[str, RobotCfg]) -> Callable[..., RobotCfg]:
    """Makes the config of a built-in robot; with `per_env=True` of a type that is not batched."""

    def make(robot: str, per_env: bool = False, **fields: Any) -> RobotCfg:
        config = builtin_robots[robot]
        return config.update(type=f'PerEnv{config.type}' if per_env else config.type, **fields)

    return make


@pytest.fixture
def run(make_env: Callable[..., Env], models: dict[str, str]) -> Callable[..., Env]:
    """Makes an Env whose episodes all have the same robots, on a floor, and resets it; more fields go to the task."""

    def make(
        *robots: RobotCfg,
        env_num: int = 1,
        episodes: int | None = None,
        substeps: int = 4,
        task: Callable[..., Any] = SingleInferenceTaskCfg,
        metrics_save_path: str = 'none',
        **fields: Any,
    ) -> Env:
        config = task(**{'scene_asset_path': models['floor'], 'robots': list(robots), **fields})
        env = make_env(
            tasks=[config] * (episodes or env_num),
            env_num=env_num,
            sim={'substeps': substeps},
            metrics_save_path=metrics_save_path,
        )
        env.reset()
        return env

    return make


@pytest.fixture
def puck(write_model: Callable[[str, str], str]) -> Callable[..., GenericRobotCfg]:
    """Makes a puck of 40 cm across and 50 cm high that is put from place to place."""

    def make(y: float = 0.0, height: float = 0.25, **fields: Any) -> GenericRobotCfg:
        flash = FlashControllerCfg(name='flash', radius=0.2, height=0.5, step_height=0.15)
        file = write_model('puck', PUCK)
        return GenericRobotCfg(name='puck', usd_path=file, position=(0.0, y, height), controllers=[flash], **fields)

    return make


@pytest.fixture
def course(write_model: Callable[[str, str], str]) -> str:
    """File of a scene with a wall, steps and a ledge."""
    return write_model('course', COURSE)
