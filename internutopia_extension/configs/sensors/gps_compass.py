"""Config of the GPS with a compass."""

from internutopia.config.robot import SensorCfg


class GPSCompassCfg(SensorCfg):
    """Position and heading of the robot, relative to its start."""

    name: str = 'gps_compass'
    type: str = 'GPSCompass'
