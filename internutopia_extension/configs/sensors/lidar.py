"""Lidar."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, FiniteFloat, field_validator, model_validator
from typing_extensions import override

from internutopia.config.fields import Count, NonNegativeFloat, PositiveFloat, Quaternion, Vector
from internutopia.config.robot import SensorCfg
from internutopia.util.bounds import MAX_RAYS


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
    """Groups of MuJoCo geoms that are seen; the default is what cameras show. Group 3 holds hidden colliders."""
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
            raise ValueError('geom_groups is empty: the lidar could see nothing')
        return self

    @override
    def bytes_per_env(self) -> int:
        # directions and distances are doubles while the rays are cast
        return self.horizontal_rays * self.vertical_rays * (36 + 36 * self.pointcloud)
