"""Built-in sensors; importing this package registers them."""

from internutopia_extension import keep_paths
from internutopia_extension.sensors import body_sensors, collision_sensor, lidar, local_map, rep_camera

__all__ = ['body_sensors', 'collision_sensor', 'lidar', 'local_map', 'rep_camera']

keep_paths(__name__, rep_camera.__name__, 'mocap_controlled_camera', 'layout_edit_mocap_controlled_camera')
