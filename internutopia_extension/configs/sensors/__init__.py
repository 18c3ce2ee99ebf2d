"""Configs of sensors."""

import math

from typing_extensions import override

from internutopia.config.fields import Quaternion, Resolution, Vector
from internutopia.config.robot import SensorCfg
from internutopia_extension.configs.sensors.collision_sensor import CollisionSensorCfg
from internutopia_extension.configs.sensors.contact_sensor import ContactSensorCfg
from internutopia_extension.configs.sensors.gps_compass import GPSCompassCfg
from internutopia_extension.configs.sensors.imu import IMUCfg
from internutopia_extension.configs.sensors.joint_force_sensor import JointForceSensorCfg
from internutopia_extension.configs.sensors.lidar import LidarCfg
from internutopia_extension.configs.sensors.local_map import LocalMapCfg

__all__ = [
    'CollisionSensorCfg',
    'ContactSensorCfg',
    'GPSCompassCfg',
    'IMUCfg',
    'JointForceSensorCfg',
    'LayoutEditMocapControlledCameraCfg',
    'LidarCfg',
    'LocalMapCfg',
    'MocapControlledCameraCfg',
    'RepCameraCfg',
]


class RepCameraCfg(SensorCfg):
    """A camera: the model's own at `prim_path`, or a new one in that place."""

    type: str = 'RepCamera'
    resolution: Resolution | None = None
    """Width and height of the image, pixels; None means (64, 64)."""
    rgba: bool = True
    """True to observe `rgba`, uint8 (height, width, 4)."""
    landmarks: bool = False
    """True to observe `landmarks` and `bounding_box_2d_tight`: class, box and visible share of each thing."""
    semantic_segmentation: bool = False
    """True to observe `semantic_segmentation`: the class of the thing at each pixel, uint32 (height, width)."""
    instance_segmentation: bool = False
    """True to observe `instance_segmentation`: the thing at each pixel, uint32 (height, width)."""
    depth: bool = False
    """True to observe `depth`, float32 (height, width), m along the optical axis."""
    pointcloud: bool = False
    """True to observe `pointcloud`, (n, 3), m, env frame, with the depth and camera parameters it is made from."""
    camera_params: bool = False
    """True to observe `camera_params`: focal length, aperture and pose of the camera."""

    @override
    def bytes_per_env(self) -> int:
        segmentations = self.semantic_segmentation + self.instance_segmentation
        labels = 4 * (self.landmarks or segmentations > 0) + 4 * self.landmarks + 4 * segmentations
        pixel = 4 * self.rgba + labels + 4 * (self.depth or self.pointcloud) + 12 * self.pointcloud
        return math.prod(self.resolution or (64, 64)) * pixel


class MocapControlledCameraCfg(SensorCfg):
    """A camera that the left hand of a captured person holds."""

    type: str = 'MocapControlledCamera'
    resolution: Resolution | None = None
    """Width and height of the image, pixels; None means (320, 240)."""
    translation: Vector | None = None
    """Start position relative to the parent prim (x, y, z), m; None means its origin."""
    orientation: Quaternion | None = None
    """Start orientation relative to the parent prim (w, x, y, z); None means not rotated."""

    @override
    def bytes_per_env(self) -> int:
        return math.prod(self.resolution or (320, 240)) * 4


class LayoutEditMocapControlledCameraCfg(MocapControlledCameraCfg):
    """The camera with which a captured person views the scene that is being edited."""

    type: str = 'LayoutEditMocapControlledCamera'
