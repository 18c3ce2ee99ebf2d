"""`isaacsim.core.api.materials`: what shapes are made of; color and dynamic friction are used."""

from __future__ import annotations

from functools import partial
from typing import Any

from internutopia.compat.numbers import checked_numbers, checks_arguments

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

    @checks_arguments
    def __init__(self, prim_path: str, name: str = 'visual_material', color: Any = None, **options: Any):
        self.prim_path, self.name = prim_path, name
        self._color = color

    def get_color(self) -> Any:
        """Return red, green, blue, None if they were not given."""
        return self._color

    @checks_arguments
    def set_color(self, color: Any) -> None:
        """Set red, green, blue for shapes that are made with it from now on."""
        self._color = color


PreviewSurface = OmniPBR = OmniGlass = VisualMaterial


class PhysicsMaterial:
    """Friction and restitution of a shape; of them, its dynamic friction is used."""

    @checks_arguments
    def __init__(
        self,
        prim_path: str,
        name: str = 'physics_material',
        static_friction: float | None = None,
        dynamic_friction: float | None = None,
        restitution: float | None = None,
    ):
        self.prim_path, self.name = prim_path, name
        self._values = {
            'static_friction': static_friction,
            'dynamic_friction': dynamic_friction,
            'restitution': restitution,
        }

    def __getattr__(self, call: str) -> Any:
        """Return `get_<quantity>`, None if it was not given, or `set_<quantity>`, for shapes that are made later."""
        verb, _, quantity = call.partition('_')
        if verb not in ('get', 'set') or quantity not in self._values:
            raise AttributeError(call)
        return partial(self._values.get if verb == 'get' else self._set, quantity)

    def _set(self, quantity: str, value: float) -> None:
        self._values[quantity] = float(checked_numbers(f'PhysicsMaterial: {quantity}', value, 1)[0])
