"""`isaacsim.core.api.materials`: what shapes are made of; only the color of a visual material is used."""

from __future__ import annotations

from typing import Any

import numpy as np

MATERIALS = ('OmniGlass', 'OmniPBR', 'PhysicsMaterial', 'PreviewSurface', 'VisualMaterial')
"""Names of `isaacsim.core.api.materials`."""


class VisualMaterial:
    """Looks of a shape.

    Args:
        prim_path: kept.
        name: its name.
        color: red, green, blue, 0 to 1.
        **options: accepted: shapes have one color, without textures and reflections.
    """

    def __init__(self, prim_path: str, name: str = 'visual_material', color: Any = None, **options: Any):
        self.prim_path, self.name = prim_path, name
        self._color = None if color is None else np.asarray(color, float)

    def get_color(self) -> Any:
        """Return red, green, blue, None if they were not given."""
        return self._color

    def set_color(self, color: Any) -> None:
        """Set red, green, blue for shapes that are made with it from now on."""
        self._color = np.asarray(color, float)


PreviewSurface = OmniPBR = OmniGlass = VisualMaterial


class PhysicsMaterial:
    """Friction and restitution of a shape: kept, and ignored with a warning where a shape is made of it."""

    def __init__(
        self,
        prim_path: str,
        name: str = 'physics_material',
        static_friction: float | None = None,
        dynamic_friction: float | None = None,
        restitution: float | None = None,
    ):
        self.prim_path, self.name = prim_path, name
        self._values = {'static': static_friction, 'dynamic': dynamic_friction, 'restitution': restitution}

    def get_static_friction(self) -> float | None:
        """Return the static friction, None if it was not given."""
        return self._values['static']

    def get_dynamic_friction(self) -> float | None:
        """Return the dynamic friction, None if it was not given."""
        return self._values['dynamic']

    def get_restitution(self) -> float | None:
        """Return the restitution, None if it was not given."""
        return self._values['restitution']
