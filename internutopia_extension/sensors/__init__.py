"""Built-in sensors; importing this package registers them."""

from internutopia_extension.sensors import body_sensors, lidar, local_map, rep_camera

__all__ = ['body_sensors', 'lidar', 'local_map', 'rep_camera']
