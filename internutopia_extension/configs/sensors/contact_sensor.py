"""Contact sensor."""

from internutopia.config.fields import NonNegativeFloat
from internutopia.config.robot import SensorCfg


class ContactSensorCfg(SensorCfg):
    """The net contact force on a link of the robot, or on an object beside it."""

    name: str = 'contact'
    prim_path: str | None = None
    """The link, or else the object or movable scene body, whose contacts are measured: its name, or a path that ends in
    it; None means the root link."""
    type: str = 'ContactSensor'
    against: str | None = None
    """Link, object or movable scene body; contacts with anything else do not count. None counts all."""
    threshold: NonNegativeFloat = 0.0
    """Net force, N, from which on a contact counts as one for `in_contact`; 0 counts every touch."""
    noise: NonNegativeFloat = 0.0
    """Standard deviation of normal noise on each axis of the force, N; `in_contact` is without noise."""
