"""Configs of moving in discrete steps."""

import math

from internutopia.config.fields import NonNegativeFloat, PositiveFloat
from internutopia.config.robot import ControllerCfg


class DiscreteControllerCfg(ControllerCfg):
    """Base of the configs of controllers with the actions stop, forward, left and right."""

    forward_distance: PositiveFloat = 0.25
    """Length of a step forward, m."""
    turn_angle: PositiveFloat = math.radians(15)
    """Angle of a turn, rad."""


class DiscreteMoveControllerCfg(DiscreteControllerCfg):
    """Discrete steps, walked or driven; needs a move-by-speed controller below it."""

    type: str = 'DiscreteMoveController'
    forward_speed: PositiveFloat = 0.5
    """Forward speed, m/s."""
    rotation_speed: PositiveFloat = 1.0
    """Rotation speed, rad/s."""
    distance_tolerance: NonNegativeFloat = 0.005
    """Largest shortfall of a step forward, m."""
    angle_tolerance: NonNegativeFloat = 0.01
    """Largest shortfall of a turn, rad."""
    patience: PositiveFloat = 3.0
    """Longest duration of a step, as a multiple of the time that it takes at full speed."""


class FlashControllerCfg(DiscreteControllerCfg):
    """Discrete steps by teleportation, if nothing is in the way."""

    type: str = 'FlashController'
    radius: PositiveFloat | None = None
    """Radius of the upright cylinder that has to be free, m; None, here and below: as of the robot (`Agent.of`)."""
    height: PositiveFloat | None = None
    """Height of the cylinder, m."""
    step_height: PositiveFloat | None = None
    """Height difference of the ground that a step may go up or down, m; lower things are no obstacles."""
