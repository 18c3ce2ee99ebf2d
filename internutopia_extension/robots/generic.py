"""Generic robot: any articulated model, without its own class; base of the legged robots."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from typing_extensions import override

from internutopia.config.robot import ControllerCfg, RobotCfg
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives, RobotSpec
from internutopia_extension.configs.robots.generic import GenericRobotCfg

DRIVE_SETTINGS = ('stiffness', 'damping', 'effort_limit')
# per rad or m, the least where neither the config nor the file has any
DEFAULT_STIFFNESS, DEFAULT_DAMPING = 100.0, 10.0


@BaseRobot.register('GenericRobot')
class GenericRobot(BaseRobot):
    """Any robot, from the MJCF, URDF or USD file `config.usd_path`.

    A model without actuators gets joint drives: with the config's stiffness and damping, else with those of the drives
    in the file (USD), else with as much as it takes to hold its links. So does one that has nothing but motors on
    joints, if a controller commands drives (see `BaseController.commands`) or the config has settings for
    them; not if one commands the actuators. Any other model keeps its actuators, and is commanded through an
    `ActuatorController`.
    """

    batched = True

    @classmethod
    @override
    def model(cls, config: RobotCfg) -> RobotSpec:
        assert isinstance(config, GenericRobotCfg)
        model = super().model(config)
        configured = tuple(name for name in DRIVE_SETTINGS if getattr(config, name) is not None)
        commanded = commanded_by(config.controllers or [])
        without_gains = config.stiffness is None and config.damping is None
        return dataclasses.replace(
            model,
            fixed_base=config.fixed_base,
            drives=Drives(
                DEFAULT_STIFFNESS if config.stiffness is None else config.stiffness,
                DEFAULT_DAMPING if config.damping is None else config.damping,
                config.effort_limit,
                only_if_bare=True,
                instead_of_motors='actuators' not in commanded and bool(configured or 'drives' in commanded),
                asset_first=without_gains,
                sized=without_gains,
                configured=configured,
            ),
            joint_positions=config.initial_joint_positions,
            starts_outside_limits=config.starts_outside_limits,
            self_collisions=config.self_collisions,
        )

    @property
    def base_link(self) -> str | None:  # type: ignore[override]
        """Link whose pose is observed; None means the root."""
        return getattr(self.config, 'base_link', None)


def commanded_by(controllers: Iterable[ControllerCfg]) -> set[str | None]:
    """Return the `BaseController.commands` of controllers and those below them; unknown types command nothing."""
    commanded = set[str | None]()
    for config in controllers:
        known = BaseController.controllers.get(config.type)
        commanded |= {known.commands if known else None} | commanded_by(config.sub_controllers or [])
    return commanded
