"""Unitree Go2, the quadruped with 12 joints."""

from __future__ import annotations

from types import MappingProxyType

from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives
from internutopia_extension.robots.generic import LeggedRobot

# Home pose [rad] of every leg: mujoco_menagerie unitree_go2 (BSD-3-Clause), keyframe home
_HOME = {'hip': 0.0, 'thigh': 0.9, 'calf': -1.8}


@BaseRobot.register('Go2Robot')
class Go2Robot(LeggedRobot):
    """Unitree Go2, a quadruped with 12 driven joints; its pose is that of its base."""

    batched = True
    # stiffness: unitree_mujoco (BSD-3-Clause), stand_go2.py; damping: that of the joints in mujoco_menagerie's model
    drives = Drives(stiffness=50.0, damping=2.0)
    home = MappingProxyType(
        {f'{leg}_{joint}_joint': angle for leg in ('FL', 'FR', 'RL', 'RR') for joint, angle in _HOME.items()}
    )
    base_link = 'base'
    feet = ('FL_foot', 'FR_foot', 'RL_foot', 'RR_foot')
