"""NVIDIA Jetbot, a small robot on two wheels and a caster."""

from __future__ import annotations

from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives
from internutopia_extension.robots.wheeled_robot import WheeledRobot

__all__ = ['JetbotRobot', 'WheeledRobot']


@BaseRobot.register('JetbotRobot')
class JetbotRobot(BaseRobot):
    """Jetbot with a velocity drive on each wheel."""

    batched = True
    # Stiff enough to hold a commanded wheel speed within 1 % under the robot's own weight, within the motor's 0.08 N·m
    drives = Drives(stiffness=0.0, damping=0.1)
    fixed_base = False
    at_root = True

    @property
    def prim_path(self) -> str:
        """Absolute prim path of the robot."""
        return self.config.prim_path
