"""Config of the collision sensor."""

import math

from pydantic import Field, FiniteFloat

from internutopia.config.fields import NonNegativeFloat
from internutopia.config.robot import SensorCfg


class CollisionSensorCfg(SensorCfg):
    """Contact of the robot with anything but the ground that it stands on."""

    name: str = 'collision'
    type: str = 'CollisionSensor'
    ground_angle: FiniteFloat = Field(default=math.pi / 4, ge=0, le=math.pi / 2)
    """Slope, rad, up to which a touched surface counts as ground."""
    step_height: NonNegativeFloat = 0.12
    """Height, m, up to which a robot with feet steps on things: a touched surface counts as ground at any slope, if it
    is that low. Sides of steps, bumps and edges are; walls and furniture are not."""
