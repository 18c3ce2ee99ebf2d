"""An object from a model file."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from internutopia.core.object import BaseObject
from internutopia.model.spec import ObjectSpec

_MASS = 1.0  # [kg]


@BaseObject.register('UsdObject')
class UsdObject(BaseObject):
    """The model in `config.usd_path` (USD, URDF or MJCF), scaled by `config.scale`.

    With `collider` it is one rigid body of 1 kg that physics moves; without, it can only be seen and stays in place.
    """

    @classmethod
    @override
    def model(cls, config: Any) -> ObjectSpec:
        """Return the model of the object."""
        return ObjectSpec(
            name=config.name,
            asset=config.usd_path,
            scale=config.scale,
            position=config.position,
            orientation=config.orientation,
            mass=_MASS if config.collider else None,
            dynamic=config.collider,
            collider=config.collider,
        )
