"""Configs of objects."""

from internutopia.config.base import PathStr, PositiveFloat, Vector
from internutopia.config.task import ObjectCfg


class DynamicCubeCfg(ObjectCfg):
    """A box that physics moves; `scale` holds its edge lengths, m."""

    type: str = 'DynamicCube'
    color: Vector | None = None
    """Red, green and blue, 0 to 1; None means the default colour."""
    mass: PositiveFloat | None = None
    """Mass, kg; None computes it from `density` and size."""
    density: PositiveFloat | None = None
    """Density, kg/m^3, used when there is no `mass`; None means the default density."""
    collider: bool = True
    """True if other things collide with it."""


class StaticCubeCfg(ObjectCfg):
    """A static box with collisions; `scale` has its edge lengths, m."""

    type: str = 'StaticCube'
    color: Vector | None = None
    """Red, green and blue, 0 to 1; None means the default colour."""


class VisualCubeCfg(ObjectCfg):
    """A box that can be seen but not touched; `scale` holds its edge lengths, m."""

    type: str = 'VisualCube'
    color: Vector | None = None
    """Red, green and blue, 0 to 1; None means the default colour."""


class UsdObjCfg(ObjectCfg):
    """An object from a model file."""

    type: str = 'UsdObject'
    usd_path: PathStr
    """Model file: USD, URDF (`.urdf`) or MJCF (`.xml`)."""
    collider: bool = True
    """True if other things collide with it and physics moves it; otherwise it is visual only."""
    fixed: bool = False
    """True if its root is fixed; it has colliders, and the joints of its file move its parts."""
