"""A box that nothing moves."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from internutopia.core.object import BaseObject
from internutopia.model.spec import ObjectSpec


@BaseObject.register('StaticCube')
class StaticCube(BaseObject):
    """A box with edge lengths `config.scale` [m] that collides and stays where it is put; it can be teleported."""

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
            dynamic=False,
        )
