"""Clearpath Ridgeback with a Franka Panda on it: an arm on a base that drives in every direction."""

from __future__ import annotations

from types import MappingProxyType

from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives
from internutopia_extension.configs.joint_names import RIDGEBACK_BASE_3
from internutopia_extension.robots.franka import FrankaRobot

# Velocity drives of the base along x and y [N·s/m] and about z [N·m·s/rad], chosen here: a speed is there after 0.01 s,
# except for the effort limits. With the 1e5 of Isaac Lab's RIDGEBACK_FRANKA_PANDA_CFG it takes seconds at those limits.
_DAMPING = (4e4, 4e4, 2e3)


@BaseRobot.register('RidgebackFrankaRobot')
class RidgebackFrankaRobot(FrankaRobot):
    """Franka Panda on a Clearpath Ridgeback, a holonomic base with velocity drives; its pose is that of the base.

    `position` is the ground below the base, where it starts. The base stays level, and as high as it started.
    """

    batched = True
    drives = Drives(
        {**dict.fromkeys(RIDGEBACK_BASE_3, 0.0), **FrankaRobot.drives.stiffness},
        {**dict(zip(RIDGEBACK_BASE_3, _DAMPING, strict=True)), **FrankaRobot.drives.damping},
    )
    home = MappingProxyType({**dict.fromkeys(RIDGEBACK_BASE_3, 0.0), **FrankaRobot.home})
    base_link = 'base_link'
