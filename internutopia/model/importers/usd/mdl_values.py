"""Values of MDL expressions: colours, numbers and images, without the results of shaders.

Coordinates of a bitmap are scaled by its tiling, turned by `W_angle` [deg, counterclockwise] and moved by its offset,
in that order, which is that of `UsdTransform2d`: KooPbr's own order is not published. Mixtures and falloffs are taken
for the first bitmap in them, or else for the first colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from internutopia.model.importers.usd.mdl import Call, Name, Node
from internutopia.model.importers.usd.mdl_files import MdlFiles
from internutopia.model.importers.usd.textures import Texture, layout

_CONSTRUCTORS = ('color', 'float2', 'float3', 'float4', 'double2', 'double3', 'double4', 'int2', 'int3', 'int4')
ALPHA = 3
"""Channel of an image that is its opacity."""


class Value(NamedTuple):
    """Numbers, an image, or neither where it is unknown. `channel`: of the image, where one number is wanted."""

    numbers: tuple[float, ...] = ()
    image: Texture | None = None
    channel: int = 0


class Values:
    """Evaluator of expressions of one material.

    Attributes:
        missing: names of images that do not exist.
    """

    def __init__(self, files: MdlFiles):
        self._files = files
        self.missing: list[str] = []

    def image(self, name: str, folder: Path, *, is_linear: bool = False) -> Value:
        """Return an image that a file in a folder names; `is_linear`: its pixels are not in sRGB."""
        file = self._files.find(name, folder)
        if file is None and name:
            self.missing.append(name)
        return Value(image=Texture(self._files.real(file), is_linear=is_linear)) if file else Value()

    def of(self, node: Node, folder: Path, scope: Mapping[str, Value]) -> Value:
        """Return the value of an expression in a file of that folder; `scope`: values of names."""
        match node:
            case float():
                return Value((node,))
            case Name():
                return scope.get(node.value, Value())
            case Call('texture_2d', ((_, str(name)), *_)):
                is_linear = any(argument == Name('gamma_linear') for _, argument in node.arguments)
                return self.image(name, folder, is_linear=is_linear)
            case Call():
                return self._of_call(node, folder, scope)
        return Value()

    def _of_call(self, call: Call, folder: Path, scope: Mapping[str, Value]) -> Value:
        values = [(name.lower(), self.of(node, folder, scope)) for name, node in call.arguments]
        image = next((value for _, value in values if value.image is not None), None)
        if image is not None and image.image is not None:
            if call.name.endswith('alpha_source'):
                return image._replace(channel=ALPHA)
            numbers = {name: value.numbers[0] for name, value in values if value.numbers}
            return image._replace(image=_laid_out(image.image, numbers))
        if call.name in _CONSTRUCTORS:
            return Value(tuple(number for _, value in values for number in value.numbers))
        several = [value for _, value in values if len(value.numbers) > 1]
        return next((value for value in (*several, *(value for _, value in values)) if value.numbers), Value())


def _laid_out(image: Texture, numbers: Mapping[str, float]) -> Texture:
    """Return an image with the layout in a bitmap's arguments; it stays as it is if they have none."""
    place = image.layout
    if any(name.endswith(('_tiling', '_offset', '_angle')) for name in numbers):
        place = layout(
            (numbers.get('u_tiling', 1.0), numbers.get('v_tiling', 1.0)),
            numbers.get('w_angle', 0.0),
            (numbers.get('u_offset', 0.0), numbers.get('v_offset', 0.0)),
        )
    wrap = tuple('mirror' if numbers.get(f'{axis}_mirror') else own for axis, own in zip('uv', image.wrap, strict=True))
    channel = int(numbers.get('mapchannel', 1))
    coordinates = f'st{channel - 1}' if channel > 1 else image.coordinates
    return replace(image, layout=place, wrap=wrap, coordinates=coordinates)
