"""Configs of sensors."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, FiniteFloat, field_validator, model_validator
from typing_extensions import override

from internutopia.config.base import BaseCfg, Count, NonNegativeFloat, PositiveFloat, Quaternion, Resolution, Vector
from internutopia.config.robot import SensorCfg
from internutopia.util.bounds import MAX_RAYS


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


class LensCfg(BaseCfg):
    """Projection of a camera, as output by calibration tools, at the camera's resolution."""

    focal: tuple[PositiveFloat, PositiveFloat]
    """Focal lengths (fx, fy), pixels."""
    centre: tuple[FiniteFloat, FiniteFloat] | None = None
    """Principal point (cx, cy), pixels; (0.5, 0.5) is the centre of the upper left one. None is the centre of the
    image."""
    distortion: Literal['brown_conrady', 'kannala_brandt'] | None = None
    """Distortion model: for most lenses, or for fisheyes; None means no distortion."""
    coefficients: tuple[FiniteFloat, ...] = ()
    """Of the distortion, in the order of OpenCV: k1, k2, p1, p2, k3, or k1 to k4 of a fisheye; 0 where left out."""

    @model_validator(mode='after')
    def _check_coefficients(self) -> Self:
        most = {None: 0, 'brown_conrady': 5, 'kannala_brandt': 4}[self.distortion]
        if len(self.coefficients) > most:
            raise ValueError(
                f'distortion {self.distortion} has {most} coefficients, {len(self.coefficients)} are given'
            )
        return self


class CameraNoiseCfg(BaseCfg):
    """Noise of the images of a camera, reproducible for an episode with the same seed."""

    color: NonNegativeFloat = 0.0
    """Standard deviation of normal noise on each channel, of 255."""
    depth: NonNegativeFloat = 0.0
    """Standard deviation of normal noise on the depth at 1 m, m; it grows with the depth squared, as in stereo."""
    depth_step: NonNegativeFloat = 0.0
    """Depths are rounded to multiples of this, m; 0 means no rounding."""
    depth_dropout: NonNegativeFloat = Field(default=0.0, lt=1.0)
    """Share of pixels that have no depth: it is infinite there."""


class CameraRandomizationCfg(BaseCfg):
    """Ranges around the values of a camera, from which each episode samples uniformly."""

    position: NonNegativeFloat = 0.0
    """Greatest shift along each axis of the camera, m."""
    angle: NonNegativeFloat = Field(default=0.0, le=180.0)
    """Greatest turn, about any axis, degrees."""
    zoom: NonNegativeFloat = Field(default=0.0, lt=1.0)
    """Maximum relative change of the focal lengths: with 0.1, the factor is 0.9 to 1.1."""
    exposure: NonNegativeFloat = 0.0
    """Greatest change of the exposure, in stops: each is a factor of 2 of all colours."""


class MountedCameraCfg(RepCameraCfg):
    """A camera that is added to the robot: `prim_path` is a link and its own name, such as `panda_hand/wrist`."""

    type: str = 'MountedCamera'
    translation: Vector = (0.0, 0.0, 0.0)
    """Position on the link (x, y, z), m, in the link's frame."""
    orientation: Quaternion = (1.0, 0.0, 0.0, 0.0)
    """Orientation (w, x, y, z) relative to the link; the camera looks along -z, and +y is up in the image."""
    mount: Literal['link', 'env', 'follow'] = 'link'
    """Frame of the pose: that of the link; that of the env, in which the camera is fixed, such as on a
    ceiling; or the axes of the env at the link, which the camera follows without turning."""
    fovy: PositiveFloat = Field(default=60.0, lt=180.0)
    """Vertical field of view, degrees; `lens` wins over it."""
    lens: LensCfg | None = None
    """Focal lengths, centre and distortion; None is `fovy` without distortion."""
    clipping: tuple[NonNegativeFloat, PositiveFloat] | None = None
    """Minimum and maximum depth, m; nearer and farther points have infinite depth. None is no limit."""
    noise: CameraNoiseCfg = CameraNoiseCfg()
    """Noise of its images."""
    randomization: CameraRandomizationCfg = CameraRandomizationCfg()
    """Ranges of pose, field of view and exposure, from which each episode samples."""
    every: Count | None = None
    """Number of steps from one image to the next, counted from the start of the episode; None means that it renders
    when `SimConfig.rendering_interval` says so."""
    after_actions: bool = False
    """True: of these steps, it renders only in those in which no discrete action of the robot and no chunk is
    under way (`ChunkControllerCfg`); with `every` only."""
    latency: Count | None = None
    """Number of steps from the moment that an image shows to the observation with it, only with `every`. At the
    start of an episode it is the first one. None is none."""

    @model_validator(mode='after')
    def _check_latency(self) -> Self:
        if self.latency and self.every is None:
            raise ValueError(f'latency = {self.latency} counts steps: it needs every, such as every=1')
        if self.after_actions and (self.every is None or self.latency):
            raise ValueError('after_actions: it needs every, such as every=1, and no latency')
        return self

    @override
    def bytes_per_env(self) -> int:
        return super().bytes_per_env() * (1 + -(-(self.latency or 0) // (self.every or 1)))


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


class CollisionSensorCfg(SensorCfg):
    """Contact of the robot with anything but the ground that it stands on."""

    name: str = 'collision'
    type: str = 'CollisionSensor'
    ground_angle: FiniteFloat = Field(default=math.pi / 4, ge=0, le=math.pi / 2)
    """Slope, rad, up to which a touched surface counts as ground."""
    step_height: NonNegativeFloat = 0.12
    """Height, m, up to which a robot with feet steps on things: a touched surface counts as ground at any slope, if it
    is that low. Sides of steps, bumps and edges are; walls and furniture are not."""


class ContactSensorCfg(SensorCfg):
    """The net contact force on a link of the robot, or on an object of its env."""

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


class GPSCompassCfg(SensorCfg):
    """Position and heading of the robot, relative to its start."""

    name: str = 'gps_compass'
    type: str = 'GPSCompass'


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


class JointForceSensorCfg(SensorCfg):
    """Efforts of joints, and the forces and torques that joints transmit."""

    name: str = 'joint_forces'
    type: str = 'JointForceSensor'
    joint_names: list[str] | None = None
    """Joints whose `efforts` are measured, in this order; None means all, in joint order, an empty list none."""
    wrenches_at: list[str] = []
    """Joints, or links (for their attachment to their parents), where `forces` and `torques` are measured."""
    noise: NonNegativeFloat = 0.0
    """Standard deviation of normal noise on each effort, force and torque, N·m or N."""

    @model_validator(mode='after')
    def _check_anything(self) -> Self:
        if self.joint_names == [] and not self.wrenches_at:
            raise ValueError('joint_names and wrenches_at are empty: there is nothing to measure')
        return self


class LidarCfg(SensorCfg):
    """A lidar on a link: distances along a fan or grid of rays, around the x axis of the sensor."""

    name: str = 'lidar'
    prim_path: str | None = None
    """The link that it is mounted on: its name, or a path that ends in it; None means the root."""
    type: str = 'Lidar'
    translation: Vector = (0.0, 0.0, 0.0)
    """Position on the link (x, y, z), m, in the link's frame."""
    orientation: Quaternion = (1.0, 0.0, 0.0, 0.0)
    """Orientation (w, x, y, z) relative to the link."""
    horizontal_fov: PositiveFloat = 2 * math.pi
    """Horizontal field of view, rad, at most 2 pi. Less than that: the first and last ray are on its borders."""
    horizontal_rays: Count = 360
    """Rays of a row, from right to left."""
    vertical_fov: NonNegativeFloat = 0.0
    """Vertical field of view, rad, at most pi; the first and last row are on its borders."""
    vertical_rays: Count = 1
    """Rows of rays, from the lowest to the highest; a single one is level."""
    min_range: NonNegativeFloat = 0.0
    """Shortest measurable distance, m."""
    max_range: PositiveFloat = 30.0
    """Longest measurable distance, m."""
    miss: Literal['inf', 'max'] = 'inf'
    """Value of `ranges` where nothing is seen: infinity (minus infinity if something is nearer than `min_range`, as in
    ROS), or `max_range` (`min_range`)."""
    pointcloud: bool = False
    """True to observe `pointcloud`: the points that were hit, env frame."""
    exclude_robot: bool = True
    """True if rays pass through the robot itself; the link that the lidar is mounted on is never seen."""
    geom_groups: list[Annotated[int, Field(ge=0, le=5)]] = [0, 1, 2]
    """Groups of geoms that are detected; the default is those that cameras render. Group 3 holds hidden colliders."""
    noise: NonNegativeFloat = 0.0
    """Standard deviation of normal noise on the ranges, m."""

    @field_validator('horizontal_fov', 'vertical_fov')
    @classmethod
    def _check_fov(cls, value: FiniteFloat, info: object) -> FiniteFloat:
        name = getattr(info, 'field_name', '')
        full, text = (2 * math.pi, '2 pi') if name == 'horizontal_fov' else (math.pi, 'pi')
        if value > full * (1 + 1e-9):
            raise ValueError(f'a field of view is in rad, at most {text}; got {value:g}: was it meant in degrees?')
        return min(value, full)

    @model_validator(mode='after')
    def _check_rays(self) -> Self:
        if (rays := self.horizontal_rays * self.vertical_rays) > MAX_RAYS:
            raise ValueError(
                f'horizontal_rays={self.horizontal_rays} in vertical_rays={self.vertical_rays} rows are {rays} rays; '
                f'there may be {MAX_RAYS}'
            )
        if self.vertical_rays > 1 and not self.vertical_fov:
            raise ValueError(f'vertical_rays={self.vertical_rays} need a vertical_fov above 0')
        if self.max_range <= self.min_range:
            raise ValueError(f'max_range must be above min_range, got {self.max_range:g} and {self.min_range:g}')
        if not self.geom_groups:
            raise ValueError('geom_groups is empty: the lidar would detect nothing')
        return self

    @override
    def bytes_per_env(self) -> int:
        # directions and distances are doubles while the rays are cast
        return self.horizontal_rays * self.vertical_rays * (36 + 36 * self.pointcloud)


_MOST = 1024  # pixels along one side


class LocalMapCfg(SensorCfg):
    """Map of the free space around the robot, seen from above."""

    name: str = 'local_map'
    type: str = 'LocalMap'
    size: PositiveFloat = 6.4
    """Width and depth of the shown area, m; the robot is in the middle."""
    resolution: PositiveFloat = 0.1
    """Width of a pixel, m; `size` is a multiple of it. The map itself has cells of 0.05 m."""

    @property
    def pixels(self) -> int:
        """Number of pixels along one side."""
        return round(self.size / self.resolution)

    @override
    def bytes_per_env(self) -> int:
        return self.pixels**2

    @model_validator(mode='after')
    def _check_pixels(self) -> Self:
        if not 1 <= self.size / self.resolution <= _MOST or abs(self.pixels * self.resolution - self.size) > 1e-6:
            raise ValueError(
                f'size={self.size} m must be 1 to {_MOST} times the resolution, {self.resolution} m, a whole number'
            )
        return self
