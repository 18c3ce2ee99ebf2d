"""Materials: the appearance of surfaces (UsdPreviewSurface, OmniPBR and its relatives; others: `mdl_materials`)."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from internutopia.model.importers.usd.mdl_materials import MdlMaterials
from internutopia.model.importers.usd.stage_transforms import prims
from internutopia.model.importers.usd.textures import (
    GLASS_OPACITY,
    Appearance,
    Texture,
    emission_of,
    image_file,
    is_linear_space,
    layout,
)
from internutopia.model.importers.usd.values import named_by_prim

if TYPE_CHECKING:
    from pxr import Usd

# Inputs by what they mean: of UsdPreviewSurface, the MDL materials of Omniverse, and surfaces of MaterialX
_COLOR = ('diffuseColor', 'diffuse_color_constant', 'diffuse_reflection_color', 'base_color', 'glass_color')
_TEXTURE = ('diffuse_texture', 'diffuse_reflection_color_image', 'base_color_texture')
_ROUGHNESS = (
    *('roughness', 'reflection_roughness_constant', 'specular_reflection_roughness', 'specular_roughness'),
    'frosting_roughness',  # of OmniGlass
)
_METALLIC = ('metallic', 'metallic_constant', 'metalness')
_OPACITY = ('opacity', 'opacity_constant')
_READERS = ('UsdUVTexture', 'ND_UsdUVTexture', 'ND_UsdUVTexture_23', 'ND_image_color3', 'ND_tiledimage_color3')
_THRESHOLD = ('opacityThreshold', 'opacity_threshold')
_CHANNELS = {'r': 0, 'g': 1, 'b': 2, 'a': 3}
_WRAPS = ('clamp', 'mirror', 'black')  # others repeat


class _Source(NamedTuple):
    """Source of the value of an input: the value and its colour space if it has one, or a shader and its output."""

    value: Any = None
    space: str = ''
    shader: Any = None
    output: str = ''


@named_by_prim
def read_appearance(material: Usd.Prim, mdl: MdlMaterials) -> Appearance | None:
    """Read the appearance of a material prim; None without a surface shader. ValueError for unreadable inputs.

    `mdl` reads the MDL materials of the stage.
    """
    from pxr import UsdShade

    source = UsdShade.Material(material)
    contexts = ((), ('mtlx',), ('mdl',))
    shader = next((found for names in contexts if (found := source.ComputeSurfaceSource(*names)[0])), None)
    if shader is None:
        return None
    known = mdl.appearance(shader)
    if known is not None:
        return known
    warnings, missing = _unread(shader), list[str]()
    color, texture = _colour(shader, warnings, missing)
    opacity, cutout = _opacity(shader, warnings, missing)
    if cutout is not None:
        threshold = _number(shader, _THRESHOLD, 0.0)
        texture = replace(texture or cutout, alpha=cutout.alpha, channel=cutout.channel, threshold=threshold)
    glows = _number(shader, ('enable_emission',), 1.0)
    glow = _source(shader, ('emissiveColor', 'emissive_color')).value if glows else None
    emission = 0.0 if glow is None else emission_of(glow)
    if color is None and texture is None:
        color = glow if emission else (1.0, 1.0, 1.0) if _is_glass(shader) else None
    return Appearance(
        color=None if color is None else tuple(float(c) for c in color),
        opacity=opacity,
        roughness=_number(shader, _ROUGHNESS, 0.5),
        metallic=_number(shader, _METALLIC, 0.0),
        emission=emission,
        texture=texture,
        warnings=tuple(warnings),
        missing_images=tuple(missing),
        missing_mdl='' if texture or color is not None else mdl.missing(shader),
    )


def material_files(stage: Usd.Stage) -> set[Path]:
    """Return files that a stage's materials and textures are read from, and candidate paths of missing ones."""
    from pxr import Ar, UsdShade

    mdl, files = MdlMaterials(), set[str]()
    for prim in prims(stage):
        if prim.IsA(UsdShade.Material):
            try:
                found = read_appearance(prim, mdl)
            except ValueError:  # `VisualBuilder` warns of it
                continue
            files |= found.texture.files if found and found.texture else set()
    for file in mdl.files.files:  # the reader of materials warns of what is there and cannot be read
        if not os.path.exists(file) or (os.path.isfile(file) and os.access(file, os.R_OK)):
            files.add(str(file))
    return {Path(Ar.SplitPackageRelativePathOuter(file)[0]) for file in files}


def _colour(shader: Any, warnings: list[str], missing: list[str]) -> tuple[Any, Texture | None]:
    """Return colour, None if it is not given, and texture."""
    source = _source(shader, _COLOR)
    tint = _source(shader, ('diffuse_tint',)).value
    reader = source.shader
    if reader is None:
        place = layout(
            _source(shader, ('texture_scale',)).value,
            _number(shader, ('texture_rotate',), 0.0),
            _source(shader, ('texture_translate',)).value,
        )
        texture = _image(_source(shader, _TEXTURE), Texture(layout=place), warnings, missing)
        return (_product(tint) if texture else source.value), texture
    if reader.GetShaderId() not in _READERS:
        warnings.append('colours computed by shaders are not supported')
        return None, None
    texture = _image(_source(reader, ('file',)), _placed(reader), warnings, missing)
    if texture:
        return _product(_source(reader, ('scale',)).value, tint), texture
    fallback = _source(reader, ('fallback', 'default')).value
    return (None if fallback is None else tuple(fallback)[:3]), None


def _opacity(shader: Any, warnings: list[str], missing: list[str]) -> tuple[float, Texture | None]:
    """Return opacity, and a texture whose alpha it is if it varies."""
    if shader.GetInput('enable_opacity') and not _number(shader, ('enable_opacity',), 0.0):
        return 1.0, None
    source = _source(shader, _OPACITY)
    if source.shader is None:
        opacity = _number(shader, _OPACITY, GLASS_OPACITY if _is_glass(shader) else 1.0)
        threshold = _number(shader, _THRESHOLD, 0.0)
        return (float(opacity >= threshold) if threshold > 0 else opacity), None
    if source.shader.GetShaderId() not in _READERS:
        warnings.append('opacity computed by shaders is not supported')
        return 1.0, None
    image = _image(_source(source.shader, ('file',)), _placed(source.shader), warnings, missing)
    if image is None:
        return 1.0, None
    return 1.0, replace(image, file='', alpha=image.file, channel=_CHANNELS.get(source.output, 3))


def _is_glass(shader: Any) -> bool:
    called = str(shader.GetSourceAssetSubIdentifier('mdl'))
    return bool(shader.GetInput('glass_color')) or called.startswith('OmniGlass')


def _unread(shader: Any) -> list[str]:
    """Return a warning of the inputs that have an image, and no place in MuJoCo's materials."""
    maps = []
    for given in shader.GetInputs():
        name = given.GetBaseName()
        if name not in (*_COLOR, *_TEXTURE, *_OPACITY):
            found = _source(shader, (name,))
            if found.shader is not None or getattr(found.value, 'path', ''):
                maps.append(name)
    return [f'image for {", ".join(sorted(maps))} is not shown'] if maps else []


def _image(source: _Source, place: Texture, warnings: list[str], missing: list[str]) -> Texture | None:
    """Return a texture with the image of an asset; None if there is none, which is then `missing`."""
    asset = source.value
    if asset is None or not asset.path:
        return None
    file = image_file(asset)
    if not file:
        missing.append(asset.path)
    elif '<UDIM>' in asset.path:
        warnings.append(f'of the tiles of texture {asset.path} only the first one is shown')
    is_linear = place.is_linear or is_linear_space(source.space)
    return replace(place, file=file, is_linear=is_linear) if file else None


def _placed(reader: Any) -> Texture:
    """Return the layout of the image of a `UsdUVTexture`."""
    wrap = [_source(reader, (f'wrap{axis}',)).value for axis in 'ST']
    found = Texture(
        is_linear=is_linear_space(str(_source(reader, ('sourceColorSpace',)).value)),
        wrap=(wrap[0] if wrap[0] in _WRAPS else 'repeat', wrap[1] if wrap[1] in _WRAPS else 'repeat'),
    )
    place = _source(reader, ('st',)).shader
    if place and place.GetShaderId() == 'UsdTransform2d':
        scale, translation = (_source(place, (name,)).value for name in ('scale', 'translation'))
        found = replace(found, layout=layout(scale, _number(place, ('rotation',), 0.0), translation))
        place = _source(place, ('in',)).shader
    if place and (name := _source(place, ('varname',)).value):
        found = replace(found, coordinates=str(name))
    return found


def _source(shader: Any, names: tuple[str, ...]) -> _Source:
    """Return the source of the first of these inputs that has any."""
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
            return _Source(found, attributes[0].GetColorSpace())
    return _Source()


def _number(shader: Any, names: tuple[str, ...], default: float) -> float:
    found = _source(shader, names).value
    if found is None:
        return default
    try:
        return float(np.mean(np.asarray(found, float)))  # opacity may be a colour
    except ValueError:
        raise ValueError(f'{names[0]} must be a number, it is {found!r}') from None


def _product(*factors: Any) -> Any:
    """Return the product of colours; None stands for white."""
    given = [np.asarray(factor, float)[:3] for factor in factors if factor is not None]
    return np.prod(given, axis=0) if given else None
