"""Toy models, robots, controllers, tasks and objects: tiny, with known answers. `conftest.py` has fixtures of them."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from internutopia.config import MetricCfg, RobotCfg, TaskCfg
from internutopia.core.object import BaseObject
from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.task import BaseMetric, BaseReward, BaseTask
from internutopia.model.spec import Drives, ObjectSpec, RobotSpec

MODELS = {
    # two hinges that turn in the x-z plane, on a fixed base
    'arm': """
<mujoco model="arm">
  <compiler angle="radian"/>
  <worldbody>
    <body name="base">
      <geom type="box" size="0.1 0.1 0.05" mass="1"/>
      <body name="upper" pos="0 0 0.1">
        <joint name="shoulder" axis="0 1 0" range="-2 2"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.03" mass="0.5"/>
        <body name="lower" pos="0 0 0.3">
          <joint name="elbow" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.03" mass="0.5"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>""",
    # a floating box on a hinged leg: falls, touches the ground, bounces about
    'hopper': """
<mujoco model="hopper">
  <compiler angle="radian"/>
  <worldbody>
    <body name="torso">
      <freejoint name="root"/>
      <geom type="box" size="0.1 0.08 0.06" mass="2"/>
      <body name="leg" pos="0.02 0 -0.05">
        <joint name="hip" axis="0 1 0" range="-1.2 1.2"/>
        <geom type="capsule" fromto="0 0 0 0.05 0 -0.2" size="0.02" mass="0.3"/>
      </body>
      <body name="tail" pos="-0.1 0 0">
        <joint name="tail" axis="0 0 1" range="-1.5 1.5"/>
        <geom type="capsule" fromto="0 0 0 -0.15 0 0.03" size="0.015" mass="0.1"/>
      </body>
    </body>
  </worldbody>
</mujoco>""",
    'floor': """
<mujoco model="floor">
  <worldbody>
    <geom name="ground" type="plane" size="20 20 0.1"/>
  </worldbody>
</mujoco>""",
    'crates': """
<mujoco model="crates">
  <worldbody>
    <geom name="ground" type="plane" size="20 20 0.1"/>
    <geom name="wall" type="box" size="0.05 1 0.5" pos="1.5 0 0.5"/>
    <body name="crate" pos="0.5 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
    <body name="drum" pos="-0.5 0 0.2"><freejoint/><geom type="cylinder" size="0.1 0.2" mass="2"/></body>
  </worldbody>
</mujoco>""",
}


class ModelRobot(BaseRobot):
    """Whatever model the config names; that the arm has a fixed base is meant."""

    @classmethod
    def model(cls, config: RobotCfg) -> RobotSpec:
        model = super().model(config)
        return replace(model, fixed_base=True) if Path(model.asset).stem == 'arm' else model


@BaseRobot.register('ToyRobot')
class ToyRobot(ModelRobot):
    """Joint drives; one object for all envs."""

    batched = True
    drives = Drives(stiffness=50.0, damping=5.0)


@BaseRobot.register('PassiveRobot')
class PassiveRobot(ModelRobot):
    """Joint drives without stiffness or damping: moves freely until told otherwise."""

    batched = True


@BaseController.register('ToyDrive')
class ToyDrive(BaseController):
    """Position targets for all joints; batched."""

    batched = True

    def parse_action(self, action: Any) -> np.ndarray:
        return box_action(action, (self.robot.articulation.num_dof,))

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        return ArticulationAction(joint_positions=self.parsed(action, env_ids))

    def get_obs(self) -> dict[str, Any]:
        return {'error': self.robot.articulation.get_joint_positions() * 2.0}


@BaseController.register('ToyPush')
class ToyPush(BaseController):
    """Joint efforts; one object per env."""

    def action_to_control(self, action: Any, env_ids: Any = ...) -> ArticulationAction:
        return ArticulationAction(joint_efforts=box_action(action, (self.robot.articulation.num_dof,)))


@BaseTask.register('ToyTask')
class ToyTask(BaseTask):
    """Done after `config.max_steps` steps; `calls` records the order of the calls it gets."""

    def __init__(self, config: TaskCfg, scene: Any):
        self.calls: list[str] = []
        super().__init__(config, scene)

    def post_reset(self) -> None:
        super().post_reset()
        self.calls.append('post_reset')

    def get_observations(self) -> dict[str, Any]:
        self.calls.append('observe')
        return super().get_observations()

    def is_done(self) -> bool:
        self.calls.append('is_done')
        self.steps += 1
        return self.steps >= getattr(self.config, 'max_steps', np.inf)

    def calculate_metrics(self) -> dict[str, Any]:
        self.calls.append('calculate')
        return super().calculate_metrics()

    def cleanup(self) -> None:
        self.calls.append('cleanup')
        super().cleanup()


@BaseMetric.register('ToyMetric')
class ToyMetric(BaseMetric):
    """Counts updates; `calc` gives the count, or `metric_config['value']` if there is one."""

    def __init__(self, config: MetricCfg, task_config: TaskCfg):
        super().__init__(config, task_config)
        self.seen: list[dict[str, Any]] = []

    def update(self, obs: dict[str, Any]) -> None:
        self.seen.append(copy.deepcopy(obs))

    def calc(self) -> Any:
        assert isinstance(self.metric_config, dict)
        return self.metric_config.get('value', len(self.seen))


@BaseReward.register('ToyReward')
class ToyReward(BaseReward):
    """The number of steps so far, times `settings['scale']`."""

    def calc(self) -> float:
        task: Any = self.task
        task.calls.append('reward')
        self._calc_next_state()
        return self.settings.get('scale', 1.0) * self.state

    def _calc_next_state(self) -> None:
        self.state = self.task.steps


@BaseObject.register('ToyBlock')
class ToyBlock(BaseObject):
    """A box; `mass` None makes it a fixed one."""

    @classmethod
    def model(cls, config: Any) -> ObjectSpec:
        return ObjectSpec(
            name=config.name,
            scale=config.scale,
            position=config.position,
            orientation=config.orientation,
            mass=config.mass,
            dynamic=config.mass is not None,
        )
