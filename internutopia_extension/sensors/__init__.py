"""Built-in sensors; importing this package registers them."""

from internutopia_extension.sensors import (
    collision_sensor,
    contact_sensor,
    gps_compass,
    imu,
    joint_force_sensor,
    lidar,
    local_map,
    mocap_controlled_camera,
    rep_camera,
)

__all__ = [
    'collision_sensor',
    'contact_sensor',
    'gps_compass',
    'imu',
    'joint_force_sensor',
    'lidar',
    'local_map',
    'mocap_controlled_camera',
    'rep_camera',
]
