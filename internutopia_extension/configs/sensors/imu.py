"""Inertial measurement unit."""

from internutopia.config.fields import NonNegativeFloat, Quaternion, Vector
from internutopia.config.robot import SensorCfg


class IMUCfg(SensorCfg):
    """An inertial measurement unit on a link: acceleration, angular velocity and orientation."""

    name: str = 'imu'
    prim_path: str | None = None
    """The link that it is mounted on: its name, or a path that ends in it; None means the root."""
    type: str = 'IMU'
    translation: Vector = (0.0, 0.0, 0.0)
    """Position on the link (x, y, z), m, in the link's frame."""
    orientation: Quaternion = (1.0, 0.0, 0.0, 0.0)
    """Orientation (w, x, y, z) relative to the link."""
    acceleration_noise: NonNegativeFloat = 0.0
    """Standard deviation of normal noise on each axis of the acceleration, m/s2."""
    angular_velocity_noise: NonNegativeFloat = 0.0
    """Standard deviation of normal noise on each axis of the angular velocity, rad/s."""
