"""Any articulated model as a robot, without writing a class."""

from __future__ import annotations

import dataclasses

from internutopia.core.config.robot import RobotCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.model import Drives, RobotModel
from internutopia_extension.configs.robots.generic import GenericRobotCfg

DEFAULT_STIFFNESS, DEFAULT_DAMPING = 100.0, 10.0  # per rad or m, where neither the config nor the file says any


@BaseRobot.register('GenericRobot')
class GenericRobot(BaseRobot):
    """The robot in `config.usd_path`, an MJCF, URDF or USD file.

    A model with actuators of its own keeps them and is commanded through an `ActuatorController`; another one gets
    joint drives: with the config's stiffness and damping, else with those of the drives in the file (USD).
    """

    batched = True

    @classmethod
    def model(cls, config: RobotCfg) -> RobotModel:
        """What the robot is made of."""
        assert isinstance(config, GenericRobotCfg)
        model = super().model(config)
        return dataclasses.replace(
            model,
            fixed_base=config.fixed_base,
            drives=Drives(
                DEFAULT_STIFFNESS if config.stiffness is None else config.stiffness,
                DEFAULT_DAMPING if config.damping is None else config.damping,
                only_if_bare=True,
                asset_first=config.stiffness is None and config.damping is None,
            ),
            joint_positions=config.initial_joint_positions,
            self_collisions=config.self_collisions,
        )

    @property
    def base_link(self) -> str | None:  # type: ignore[override]
        """Link whose pose is observed; None means the root."""
        return getattr(self.config, 'base_link', None)
