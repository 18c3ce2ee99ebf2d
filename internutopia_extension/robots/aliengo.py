"""Unitree Aliengo, the quadruped with 12 joints."""

from __future__ import annotations

from types import MappingProxyType

from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives
from internutopia_extension.robots.generic import LeggedRobot

# Home pose [rad] of every leg: InternUtopia 2.2.1 (MIT), the Aliengo locomotion controller
_HOME = {'hip': 0.0, 'thigh': 0.8, 'calf': -1.5}


@BaseRobot.register('AliengoRobot')
class AliengoRobot(LeggedRobot):
    """Unitree Aliengo, a quadruped with 12 driven joints; its pose is that of its base."""

    batched = True
    drives = Drives(stiffness=40.0, damping=2.0)  # InternUtopia 2.2.1 (MIT), class AliengoRobot
    home = MappingProxyType(
        {f'{leg}_{joint}_joint': angle for leg in ('FL', 'FR', 'RL', 'RR') for joint, angle in _HOME.items()}
    )
    base_link = 'base'
    feet = ('FL_foot', 'FR_foot', 'RL_foot', 'RR_foot')
