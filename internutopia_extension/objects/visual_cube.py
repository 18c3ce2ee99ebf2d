"""A box that can be seen but not touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from internutopia.core.object import BaseObject
from internutopia.model.spec import ObjectSpec
from internutopia_extension.objects.static_cube import StaticCube


@BaseObject.register('VisualCube')
class VisualCube(StaticCube):
    """A box with edge lengths `config.scale` [m] that stays where it is put and touches nothing."""

    @classmethod
    def model(cls, config: Any) -> ObjectSpec:
        """Return the model of the box."""
        return replace(super().model(config), collider=False)
