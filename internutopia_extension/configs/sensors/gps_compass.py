"""Config of the GPS with a compass."""

from internutopia.config.robot import SensorCfg


class GPSCompassCfg(SensorCfg):
    """Where the robot is and looks, relative to its start."""

    name: str = 'gps_compass'
    type: str = 'GPSCompass'
