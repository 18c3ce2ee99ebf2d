"""What a surface looks like: bound materials (UsdPreviewSurface, OmniPBR and its relatives), their textures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.scene.images import decode_image
from internutopia.core.scene.usd.stage import prims

if TYPE_CHECKING:
    from pxr import Usd

# Inputs by what they mean: of UsdPreviewSurface, then of the MDL materials of Omniverse
_COLOR = ('diffuseColor', 'diffuse_color_constant', 'diffuse_reflection_color', 'base_color', 'glass_color')
_TEXTURE = ('diffuse_texture', 'diffuse_reflection_color_image', 'base_color_texture')
_ROUGHNESS = ('roughness', 'reflection_roughness_constant', 'specular_reflection_roughness')
_METALLIC = ('metallic', 'metallic_constant', 'metalness')
_GLOW = 0.6  # emission of what glows most; lights add to it
_IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


@dataclass(frozen=True)
class Appearance:
    """A surface.

    `color` is linear RGB, None if the material does not say. `texture` is the resolved path of an image, which
    multiplies `color` (or white) and is laid out by the primvar `coordinates` (empty: the usual one) after these have
    been mapped by the `(2, 3)` matrix `layout`.
    """

    color: tuple[float, ...] | None = None
    opacity: float = 1.0
    roughness: float = 0.5
    metallic: float = 0.0
    emission: float = 0.0
    texture: str = ''
    coordinates: str = ''
    layout: tuple[tuple[float, float, float], ...] = _IDENTITY
    missing: str = ''
    """The texture, as it was authored, if there is no such file."""


def appearance(material: Usd.Prim) -> Appearance | None:
    """How a material prim looks; None if it has no surface shader."""
    from pxr import UsdShade

    source = UsdShade.Material(material)
    shader = source.ComputeSurfaceSource()[0] or source.ComputeSurfaceSource('mdl')[0]
    if not shader:
        return None
    color, reader = _first(shader, _COLOR)
    image = _image(reader) if reader else _mdl_image(shader)
    if image.get('texture'):
        color = _product(image.pop('scale', None), _first(shader, ('diffuse_tint',))[0])
    elif reader:
        color = image.pop('fallback', None)
    glows = _number(shader, ('enable_emission',), 1.0)
    glow = _first(shader, ('emissiveColor', 'emissive_color'))[0] if glows else None
    emission = 0.0 if glow is None else _GLOW * float(np.clip(max(glow), 0, 1))
    if emission and color is None:
        color = glow
    is_glass = shader.GetInput('glass_color')
    opaque = not shader.GetInput('enable_opacity') or _number(shader, ('enable_opacity',), 0.0)
    image.pop('fallback', None)
    image.pop('scale', None)
    return Appearance(
        color=None if color is None else tuple(float(c) for c in color),
        opacity=_number(shader, ('opacity', 'opacity_constant'), 0.3 if is_glass else 1.0) if opaque else 1.0,
        roughness=_number(shader, _ROUGHNESS, 0.5),
        metallic=_number(shader, _METALLIC, 0.0),
        emission=emission,
        **image,
    )


def texture_files(stage: Usd.Stage) -> set[Path]:
    """Files that the textures of a stage's materials are read from."""
    from pxr import Ar, UsdShade

    looks = [appearance(prim) for prim in prims(stage) if prim.IsA(UsdShade.Material)]
    return {Path(Ar.SplitPackageRelativePathOuter(look.texture)[0]) for look in looks if look and look.texture}


@lru_cache(32)  # the materials of a scene often share images
def read_image(file: str) -> NDArray[np.uint8]:
    """`(height, width, 3)` pixels, the top row first, of an image that may lie in a USDZ package.

    Raises:
        ValueError: It cannot be read.
    """
    from pxr import Ar

    asset = Ar.GetResolver().OpenAsset(Ar.ResolvedPath(file))
    if not asset:
        raise ValueError('no such file')
    return decode_image(bytes(asset.GetBuffer()))


def _first(shader: Any, names: tuple[str, ...]) -> tuple[Any, Any]:
    """The value of the first of these inputs that has one, and the shader that it is connected to, if any."""
    from pxr import UsdShade

    for name in names:
        source = shader.GetInput(name)
        attributes = source.GetValueProducingAttributes() if source else ()
        if not attributes:
            continue
        if UsdShade.Utils.GetType(attributes[0].GetName()) == UsdShade.AttributeType.Output:
            return None, UsdShade.Shader(attributes[0].GetPrim())
        if (value := attributes[0].Get()) is not None:
            return value, None
    return None, None


def _number(shader: Any, names: tuple[str, ...], default: float) -> float:
    value, _ = _first(shader, names)
    return default if value is None else float(value)


def _product(*factors: Any) -> Any:
    """Of colours; None stands for white."""
    given = [np.asarray(factor, float)[:3] for factor in factors if factor is not None]
    return np.prod(given, axis=0) if given else None


def _image(reader: Any) -> dict[str, Any]:
    """What a `UsdUVTexture` shows: fields of `Appearance`, and its `scale` and `fallback` colours."""
    if reader.GetShaderId() != 'UsdUVTexture':
        return {}
    found: dict[str, Any] = {'scale': _first(reader, ('scale',))[0]}
    if (fallback := _first(reader, ('fallback',))[0]) is not None:
        found['fallback'] = tuple(fallback)[:3]
    found |= _file(_first(reader, ('file',))[0])
    _, place = _first(reader, ('st',))
    if place and place.GetShaderId() == 'UsdTransform2d':
        found['layout'] = _layout(place, 'scale', 'rotation', 'translation')
        _, place = _first(place, ('in',))
    if place and (name := _first(place, ('varname',))[0]):
        found['coordinates'] = str(name)
    return found


def _mdl_image(shader: Any) -> dict[str, Any]:
    asset = _first(shader, _TEXTURE)[0]
    return _file(asset) | {'layout': _layout(shader, 'texture_scale', 'texture_rotate', 'texture_translate')}


def _layout(shader: Any, scale: str, rotation: str, translation: str) -> tuple[tuple[float, float, float], ...]:
    """Texture coordinates are scaled, turned [deg, counterclockwise] and moved, in that order."""
    sx, sy = _first(shader, (scale,))[0] or (1.0, 1.0)
    tx, ty = _first(shader, (translation,))[0] or (0.0, 0.0)
    angle = np.radians(_number(shader, (rotation,), 0.0))
    cos, sin = float(np.cos(angle)), float(np.sin(angle))
    return (cos * sx, -sin * sy, float(tx)), (sin * sx, cos * sy, float(ty))


def _file(asset: Any) -> dict[str, Any]:
    """`texture`, or `missing` if the file is not there; of an image in tiles (UDIM), the first one."""
    if asset is None or not asset.path:
        return {}
    path = asset.resolvedPath
    if '<UDIM>' in asset.path:
        from pxr import UsdShade

        tiles = UsdShade.UdimUtils.ResolveUdimTilePaths(asset.path, None)
        path = tiles[0][0] if tiles else ''
    return {'texture': str(path)} if path else {'missing': str(asset.path)}
