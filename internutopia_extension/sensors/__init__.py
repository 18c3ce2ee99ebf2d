"""Built-in sensors; importing this package registers them."""

from internutopia_extension.sensors import (
    contact_sensor,
    imu,
    joint_force_sensor,
    lidar,
    mocap_controlled_camera,
    rep_camera,
)

__all__ = ['contact_sensor', 'imu', 'joint_force_sensor', 'lidar', 'mocap_controlled_camera', 'rep_camera']
