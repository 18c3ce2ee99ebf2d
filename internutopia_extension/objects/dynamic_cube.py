"""A box that physics moves."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from internutopia.core.object import BaseObject
from internutopia.model.spec import ObjectSpec


@BaseObject.register('DynamicCube')
class DynamicCube(BaseObject):
    """A box with edge lengths `config.scale` [m] that falls, is pushed and, with `collider`, collides.

    Its mass is `config.mass`, else `config.density` times its volume, else that of water.
    """

    @classmethod
    @override
    def model(cls, config: Any) -> ObjectSpec:
        """Return the model of the box."""
        return ObjectSpec(
            name=config.name,
            scale=config.scale,
            position=config.position,
            orientation=config.orientation,
            color=config.color or ObjectSpec.color,
            mass=config.mass,
            density=config.density,
            collider=config.collider,
        )
