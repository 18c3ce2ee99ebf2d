"""A box that can be seen but not touched."""

from __future__ import annotations

from typing import Any

from internutopia.core.object import BaseObject
from internutopia.core.scene.model import ObjectModel


@BaseObject.register('VisualCube')
class VisualCube(BaseObject):
    """A box with edge lengths `config.scale` [m] that stays where it is put and touches nothing."""

    @classmethod
    def model(cls, config: Any) -> ObjectModel:
        """What the box is made of."""
        return ObjectModel(
            name=config.name,
            scale=config.scale,
            position=config.position,
            orientation=config.orientation,
            color=config.color or ObjectModel.color,
            dynamic=False,
            collider=False,
        )
