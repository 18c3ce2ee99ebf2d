"""Config of an object in a task."""

from internutopia.core.config.base import BaseCfg
from internutopia.core.config.fields import Quaternion, Scale, Vector
from internutopia.core.config.typed import TypedCfg

__all__ = ['BaseCfg', 'ObjectCfg']


class ObjectCfg(TypedCfg):
    """A thing in the scene that is not a robot. Subclasses refuse unknown fields; `ObjectCfg` itself keeps them."""

    name: str
    """Name of the object, unique among the objects and robots of its task."""
    prim_path: str
    """Path of the object's prim below the objects' root of its env, with a leading slash."""
    position: Vector = (0.0, 0.0, 0.0)
    """Start position (x, y, z), m, env frame."""
    orientation: Quaternion = (1.0, 0.0, 0.0, 0.0)
    """Start orientation (w, x, y, z), env frame."""
    scale: Scale = (1.0, 1.0, 1.0)
    """Size relative to the model along x, y, z; for a unit cube these are the edge lengths, m."""
    type: str
    """Registered name of the object class."""
