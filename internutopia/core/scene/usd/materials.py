"""What a surface looks like: bound materials (UsdPreviewSurface, OmniPBR and its relatives)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from internutopia.core.scene.usd.stage import prims
from internutopia.core.scene.usd.textures import Texture, image_file, layout
from internutopia.core.scene.usd.values import named_by_prim

if TYPE_CHECKING:
    from pxr import Usd

# Inputs by what they mean: of UsdPreviewSurface, then of the MDL materials of Omniverse
_COLOR = ('diffuseColor', 'diffuse_color_constant', 'diffuse_reflection_color', 'base_color', 'glass_color')
_TEXTURE = ('diffuse_texture', 'diffuse_reflection_color_image', 'base_color_texture')
_ROUGHNESS = ('roughness', 'reflection_roughness_constant', 'specular_reflection_roughness')
_METALLIC = ('metallic', 'metallic_constant', 'metalness')
_OPACITY = ('opacity', 'opacity_constant')
_THRESHOLD = ('opacityThreshold', 'opacity_threshold')
_GLOW = 0.6  # emission of what glows most; lights add to it
_CHANNELS = {'r': 0, 'g': 1, 'b': 2, 'a': 3}
_WRAPS = ('clamp', 'mirror', 'black')  # others repeat


@dataclass(frozen=True)
class Appearance:
    """A surface.

    `color` is linear RGB, None if the material does not say. `texture` multiplies `color` (or white).
    """

    color: tuple[float, ...] | None = None
    opacity: float = 1.0
    roughness: float = 0.5
    metallic: float = 0.0
    emission: float = 0.0
    texture: Texture | None = None
    missing: tuple[str, ...] = ()
    """The textures, as they were authored, of which there are no files."""


class _Source(NamedTuple):
    """Where an input has its value from: the value, or a shader and which of its outputs."""

    value: Any = None
    shader: Any = None
    output: str = ''


@named_by_prim
def appearance(material: Usd.Prim) -> Appearance | None:
    """How a material prim looks; None if it has no surface shader. ValueError for inputs that cannot be read."""
    from pxr import UsdShade

    source = UsdShade.Material(material)
    shader = source.ComputeSurfaceSource()[0] or source.ComputeSurfaceSource('mdl')[0]
    if not shader:
        return None
    color, texture, missing = _colour(shader)
    opacity, cutout, opacity_missing = _opacity(shader)
    if cutout is not None:
        threshold = _number(shader, _THRESHOLD, 0.0)
        texture = replace(texture or cutout, alpha=cutout.alpha, channel=cutout.channel, threshold=threshold)
    glows = _number(shader, ('enable_emission',), 1.0)
    glow = _source(shader, ('emissiveColor', 'emissive_color')).value if glows else None
    emission = 0.0 if glow is None else _GLOW * float(np.clip(max(glow), 0, 1))
    if emission and color is None:
        color = glow
    return Appearance(
        color=None if color is None else tuple(float(c) for c in color),
        opacity=opacity,
        roughness=_number(shader, _ROUGHNESS, 0.5),
        metallic=_number(shader, _METALLIC, 0.0),
        emission=emission,
        texture=texture,
        missing=(*missing, *opacity_missing),
    )


def texture_files(stage: Usd.Stage) -> set[Path]:
    """Files that the textures of a stage's materials are read from."""
    from pxr import Ar, UsdShade

    files: set[str] = set()
    for prim in prims(stage):
        if prim.IsA(UsdShade.Material):
            try:
                look = appearance(prim)
            except ValueError:  # `Looks` notes it
                continue
            files |= look.texture.files if look and look.texture else set()
    return {Path(Ar.SplitPackageRelativePathOuter(file)[0]) for file in files}


def _colour(shader: Any) -> tuple[Any, Texture | None, list[str]]:
    """Colour or None, texture, and images that are missing."""
    source = _source(shader, _COLOR)
    if source.shader is None:
        asset = _source(shader, _TEXTURE).value
        place = layout(
            _source(shader, ('texture_scale',)).value,
            _number(shader, ('texture_rotate',), 0.0),
            _source(shader, ('texture_translate',)).value,
        )
        texture, missing = _image(asset, Texture(layout=place))
        return (_product(_source(shader, ('diffuse_tint',)).value) if texture else source.value), texture, missing
    reader = source.shader
    if reader.GetShaderId() != 'UsdUVTexture':
        return None, None, []
    texture, missing = _image(_source(reader, ('file',)).value, _placed(reader))
    if texture:
        return _product(_source(reader, ('scale',)).value, _source(shader, ('diffuse_tint',)).value), texture, missing
    fallback = _source(reader, ('fallback',)).value
    return (None if fallback is None else tuple(fallback)[:3]), None, missing


def _opacity(shader: Any) -> tuple[float, Texture | None, list[str]]:
    """Opacity, a texture whose alpha it is if it varies, and images that are missing."""
    if shader.GetInput('enable_opacity') and not _number(shader, ('enable_opacity',), 0.0):
        return 1.0, None, []
    source = _source(shader, _OPACITY)
    if source.shader is None:
        opacity = 0.3 if shader.GetInput('glass_color') else 1.0
        opacity = opacity if source.value is None else float(source.value)
        threshold = _number(shader, _THRESHOLD, 0.0)
        return (float(opacity >= threshold) if threshold > 0 else opacity), None, []
    if source.shader.GetShaderId() != 'UsdUVTexture':
        return 1.0, None, []
    image, missing = _image(_source(source.shader, ('file',)).value, _placed(source.shader))
    if image is None:
        return 1.0, None, missing
    return 1.0, replace(image, file='', alpha=image.file, channel=_CHANNELS.get(source.output, 3)), []


def _image(asset: Any, place: Texture) -> tuple[Texture | None, list[str]]:
    """A texture with the image of an asset, or what is missing."""
    if asset is None or not asset.path:
        return None, []
    file = image_file(asset)
    return (replace(place, file=file), []) if file else (None, [str(asset.path)])


def _placed(reader: Any) -> Texture:
    """How a `UsdUVTexture` lays out its image."""
    wrap = [_source(reader, (f'wrap{axis}',)).value for axis in 'ST']
    found = Texture(wrap=(wrap[0] if wrap[0] in _WRAPS else 'repeat', wrap[1] if wrap[1] in _WRAPS else 'repeat'))
    place = _source(reader, ('st',)).shader
    if place and place.GetShaderId() == 'UsdTransform2d':
        scale, translation = (_source(place, (name,)).value for name in ('scale', 'translation'))
        found = replace(found, layout=layout(scale, _number(place, ('rotation',), 0.0), translation))
        place = _source(place, ('in',)).shader
    if place and (name := _source(place, ('varname',)).value):
        found = replace(found, coordinates=str(name))
    return found


def _source(shader: Any, names: tuple[str, ...]) -> _Source:
    """Where the first of these inputs that has any has its value from."""
    from pxr import UsdShade

    for name in names:
        given = shader.GetInput(name)
        attributes = given.GetValueProducingAttributes() if given else ()
        if not attributes:
            continue
        base, kind = UsdShade.Utils.GetBaseNameAndType(attributes[0].GetName())
        if kind == UsdShade.AttributeType.Output:
            return _Source(shader=UsdShade.Shader(attributes[0].GetPrim()), output=base)
        if (found := attributes[0].Get()) is not None:
            return _Source(found)
    return _Source()


def _number(shader: Any, names: tuple[str, ...], default: float) -> float:
    found = _source(shader, names).value
    return default if found is None else float(found)


def _product(*factors: Any) -> Any:
    """Of colours; None stands for white."""
    given = [np.asarray(factor, float)[:3] for factor in factors if factor is not None]
    return np.prod(given, axis=0) if given else None
