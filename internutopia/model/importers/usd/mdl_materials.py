"""Appearance of MDL materials that does not depend on the inputs of OmniPBR.

- UE4 templates: by inputs of the shader (`BaseColor_Color`, `BaseColor_Tex`, `Gloss_Color`, ...), and by the defaults
  of these in the `.mdl` file. A colour multiplies its texture, roughness is 1 - gloss.
- KooPbr: by the text of the `.mdl` file, `material X = KooPbr::KooMtl(diffuse: ..., ...)`, and its relatives.
- Any other `.mdl` file that calls one of Omniverse's own materials: by the arguments of the call.
- `WorldGridMaterial` (a grid, shown grey) and `DayMaterial` (a sky, shown white).

Values of expressions are colours, numbers and images, without the results of shaders. Coordinates of a bitmap are
scaled by its tiling, turned by `W_angle` [deg, counterclockwise] and moved by its offset, in that order, which is that
of `UsdTransform2d`: KooPbr's own order is not published. Mixtures and falloffs are taken for the first bitmap in them,
or else for the first colour.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from internutopia.model.importers.usd.mdl import Call, Material, Name, Node, read_mdl
from internutopia.model.importers.usd.mdl_files import MdlFiles
from internutopia.model.importers.usd.textures import (
    GLASS_OPACITY,
    Appearance,
    Texture,
    emission_of,
    is_linear_space,
    layout,
)

_CONSTRUCTORS = ('color', 'float2', 'float3', 'float4', 'double2', 'double3', 'double4', 'int2', 'int3', 'int4')
ALPHA = 3
"""Channel of an image that is its opacity."""
_BUILT_IN = ('Omni', 'UsdPreviewSurface', 'gltf', 'Default')  # how files begin that come with Omniverse
_FIXED = {
    'WorldGridMaterial': Appearance(color=(0.214, 0.214, 0.214)),  # 0.5 in sRGB
    'DayMaterial': Appearance(color=(1.0, 1.0, 1.0), emission=emission_of(1.0)),
}
_GLASS = re.compile('glass|translucent', re.IGNORECASE)
# names of inputs, without what they are for and underscores
_SCALES = ('tiling', 'uvtiling', 'tile', 'uvscale', 'texturescale')
_OFFSETS = ('offset', 'uvoffset', 'texturetranslate')
_SWITCHES = {'opacity_constant': 'enable_opacity', 'emissive_color': 'enable_emission'}


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


@dataclass(frozen=True)
class _Family:
    """Names of inputs by what they mean; the first one that is given counts."""

    color: tuple[str, ...]
    texture: tuple[str, ...] = ()
    tint: tuple[str, ...] = ()
    roughness: tuple[str, ...] = ()
    gloss: tuple[str, ...] = ()
    metallic: tuple[str, ...] = ()
    opacity: tuple[str, ...] = ()
    opacity_image: tuple[str, ...] = ()
    refraction: tuple[str, ...] = ()
    glow: tuple[str, ...] = ()
    glow_factor: tuple[str, ...] = ()

    def has_any(self, values: Mapping[str, Value]) -> bool:
        return not values.keys().isdisjoint((*self.color, *self.texture))


_UE4 = _Family(
    color=('BaseColor_Color',),
    texture=('BaseColor_Tex',),
    gloss=('Gloss_Color', 'Gloss'),
    metallic=('Metallic_Color', 'Metallic'),
    opacity=('Opacity', 'Opacity_Color'),
    opacity_image=('Opacity_Tex', 'OpacityTex'),
    glow=('Emissive_Color',),
    glow_factor=('EmissiveIntensity',),
)
_KOO = _Family(
    color=('diffuse', 'diffuse_color', 'color', 'light_color', 'translucent_color'),
    gloss=('reflect_glossiness',),
    metallic=('reflection_metalness',),
    opacity=('opacity',),
    opacity_image=('opacity',),
    refraction=('refract',),
    glow=('self_illumination',),
)
_KOO_LIGHT = replace(_KOO, glow=_KOO.color)
_OMNI = _Family(
    color=('diffuse_color_constant', 'diffuse_reflection_color', 'base_color', 'glass_color'),
    texture=('diffuse_texture', 'diffuse_reflection_color_image', 'base_color_texture'),
    tint=('diffuse_tint',),
    roughness=('reflection_roughness_constant', 'specular_reflection_roughness', 'roughness'),
    metallic=('metallic_constant', 'metalness', 'metallic'),
    opacity=('opacity_constant', 'opacity'),
    glow=('emissive_color',),
)


class MdlMaterials:
    """Reader of the MDL materials of one stage, each file once.

    Attributes:
        files: where their files and images are.
    """

    def __init__(self) -> None:
        self.files = MdlFiles()
        self._read: dict[str, dict[str, Material] | ValueError] = {}

    def appearance(self, shader: Any) -> Appearance | None:
        """Return the appearance of a surface shader; None for one that is no MDL, or is read as OmniPBR is.

        What is wrong with its `.mdl` file is a warning of the appearance.
        """
        asset = shader.GetSourceAsset('mdl')
        if not asset or not asset.path:
            return None
        name = PurePosixPath(asset.path.replace('\\', '/')).stem
        if name in _FIXED:
            return _FIXED[name]
        values = Values(self.files)
        given = _inputs(shader, values)
        is_ue4 = _UE4.has_any(given) or 'IsBaseColorTex' in given
        if name.startswith(_BUILT_IN) and not is_ue4:
            return None
        warnings: list[str] = []
        base, found = '', given
        try:
            file = self._file(shader, asset)
            if file is not None:
                material = self._material(file, shader, name)
                base, found = _called(material, given, lambda node, scope: values.of(node, file.parent, scope))
            elif not is_ue4:
                return None
        except ValueError as error:
            warnings.append(f'material cannot be read ({error})')
        family = _family(base, found)
        if family is None:
            unread = 'what a .mdl file computes is not read, or calls: ' + (base or name)
            return Appearance(warnings=tuple(warnings or [unread]))
        appearance = _appearance(family, found, warnings, is_glass=bool(_GLASS.search(name)))
        return replace(appearance, warnings=tuple(warnings), missing_images=tuple(dict.fromkeys(values.missing)))

    def missing(self, shader: Any) -> str:
        """Return the `.mdl` file of a shader, as it is written, if it is needed and does not exist; else empty."""
        asset = shader.GetSourceAsset('mdl')
        if not asset or not asset.path or PurePosixPath(asset.path).stem.startswith((*_BUILT_IN, *_FIXED)):
            return ''
        return '' if self._file(shader, asset) else asset.path

    def _material(self, file: Path, shader: Any, name: str) -> Material:
        """Return the material of a shader in its `.mdl` file. ValueError if it cannot be read."""
        real = self.files.real(file)
        if real not in self._read:
            try:
                self._read[real] = read_mdl(file)
            except ValueError as error:
                self._read[real] = error
        materials = self._read[real]
        if isinstance(materials, ValueError):
            raise materials
        wanted = str(shader.GetSourceAssetSubIdentifier('mdl')).partition('(')[0].rpartition('::')[2]
        for each in (wanted, name):
            if each in materials:
                return materials[each]
        if len(materials) != 1:
            raise ValueError(f'{file}: it has no material {wanted or name}')
        return next(iter(materials.values()))

    def _file(self, shader: Any, asset: Any) -> Path | None:
        if asset.resolvedPath and Path(asset.resolvedPath).is_absolute() and Path(asset.resolvedPath).exists():
            file = Path(asset.resolvedPath)
            self.files.files.add(Path(self.files.real(file)))
            return file
        return self.files.find(asset.path, _folder(shader.GetPrim().GetAttribute('info:mdl:sourceAsset')))


def _inputs(shader: Any, values: Values) -> dict[str, Value]:
    """Return the inputs of a shader that have a value."""
    from pxr import Sdf

    found: dict[str, Value] = {}
    for given in shader.GetInputs():
        for attribute in given.GetValueProducingAttributes()[:1]:
            value = attribute.Get()
            if isinstance(value, Sdf.AssetPath):
                is_linear = is_linear_space(attribute.GetColorSpace())
                found[given.GetBaseName()] = values.image(value.path, _folder(attribute), is_linear=is_linear)
            elif isinstance(value, int | float) or hasattr(value, '__len__') and not isinstance(value, str):
                found[given.GetBaseName()] = Value(tuple(np.ravel(np.asarray(value, float)).tolist()))
    return found


def _folder(attribute: Any) -> Path:
    """Return the folder of the layer that an attribute's value is from."""
    layers = [spec.layer.realPath for spec in attribute.GetPropertyStack() if spec.HasDefaultValue()]
    return Path(layers[0]).parent if layers and layers[0] else Path()


def _called(
    material: Material, given: Mapping[str, Value], value_of: Callable[[Node, Mapping[str, Value]], Value]
) -> tuple[str, dict[str, Value]]:
    """Return the callee of a material and its arguments, or the material's own parameters if it calls nothing."""
    scope = {name: value_of(node, {}) for name, node in material.parameters.items() if name not in given}
    scope |= given
    if not isinstance(material.body, Call):
        return '', scope
    inside = (node for _, node in material.body.arguments if isinstance(node, Call) and node.name.endswith('Mtl'))
    call = next(inside, material.body)  # of a material with two sides, the first
    return call.name, scope | {name: value_of(node, scope) for name, node in call.arguments if name}


def _family(base: str, values: Mapping[str, Value]) -> _Family | None:
    if _UE4.has_any(values) or 'IsBaseColorTex' in values:
        return _UE4
    if base.startswith('Koo'):
        return _KOO_LIGHT if base == 'KooLightMtl' else _KOO
    return _OMNI if base.startswith(_BUILT_IN) or _OMNI.has_any(values) else None


def _appearance(family: _Family, values: Mapping[str, Value], warnings: list[str], *, is_glass: bool) -> Appearance:
    shown = {name: value for name, value in values.items() if _is_on(name, values)}
    color, image = _first(shown, family.color), _first(shown, family.texture)
    texture = image.image or color.image
    if texture is not None and image.image is not None:
        texture = replace(texture, layout=_layout(values, texture))
    rgb = _rgb(color)
    if texture is not None:
        rgb = _rgb(_first(shown, family.tint)) if family.tint else rgb
    opacity, cutout = _opacity(family, shown, is_glass)
    if cutout is not None and cutout.image is not None:
        texture = replace(texture or replace(cutout.image, file=''), alpha=cutout.image.file, channel=cutout.channel)
    refracted = _first(shown, family.refraction).numbers
    if any(refracted):
        opacity *= 1 - (1 - GLASS_OPACITY) * float(np.mean(np.clip(refracted, 0, 1)))
        rgb = tuple(np.maximum(rgb or (0.0,) * 3, np.broadcast_to(refracted, 3)).tolist())
    glow = _rgb(_first(shown, family.glow))
    emission = emission_of(np.multiply(glow, _mean(shown, family.glow_factor, 1.0))) if glow else 0.0
    used = (*family.color, *family.texture, *family.opacity_image)
    maps = sorted(name for name, value in shown.items() if value.image is not None and name not in used)
    warnings += [f'image for {name} is not shown' for name in maps]
    roughness = _mean(shown, family.roughness, 1 - _mean(shown, family.gloss, 0.5))
    return Appearance(
        color=glow if rgb is None and texture is None and emission else rgb,
        opacity=opacity,
        roughness=roughness,
        metallic=_mean(shown, family.metallic, 0.0),
        emission=emission,
        texture=texture,
    )


def _opacity(family: _Family, values: Mapping[str, Value], is_glass: bool) -> tuple[float, Value | None]:
    image = _first(values, family.opacity_image)
    if image.image is not None:
        return 1.0, image
    return _mean(values, family.opacity, GLASS_OPACITY if is_glass else 1.0), None


def _is_on(name: str, values: Mapping[str, Value]) -> bool:
    """Return True if an input counts: images of UE4 templates, such as `Gloss_Tex`, have a switch, `IsGlossTex`.

    One of gloss or metallicity that is on, but not shown, leaves both its image and the factor of that unsaid.
    """
    if name in _SWITCHES:
        return _SWITCHES[name] not in values or any(values[_SWITCHES[name]].numbers)
    stem = re.sub('_?(Tex|Color)$', '', name)
    on = any(number > 0.5 for number in values.get(f'Is{stem}Tex', Value()).numbers)
    return on if name.endswith('Tex') and not name.startswith('Is') else not (on and stem in ('Gloss', 'Metallic'))


def _layout(values: Mapping[str, Value], texture: Texture) -> Any:
    """Return the layout of a UE4 template's base colour: `BaseColor_UVA` is scale and offset, or one of these."""
    near = {
        re.sub('^basecolor(tex)?', '', name.lower().replace('_', '')): value.numbers
        for name, value in values.items()
        if value.numbers
    }
    scale = near.get('uva', ())[:2] or next((near[name] for name in _SCALES if name in near), ())
    if not scale and ('utiling' in near or 'vtiling' in near):
        scale = (near.get('utiling', (1.0,))[0], near.get('vtiling', (1.0,))[0])
    offset = near.get('uva', ())[2:4] or next((near[name] for name in _OFFSETS if name in near), ())
    if not scale and not offset:
        return texture.layout
    return layout(np.broadcast_to(scale or (1.0,), 2).tolist(), 0.0, np.broadcast_to(offset or (0.0,), 2).tolist())


def _first(values: Mapping[str, Value], names: tuple[str, ...]) -> Value:
    """Return the first of these inputs that has a value."""
    return next((values[name] for name in names if name in values and any(values[name][:2])), Value())


def _rgb(value: Value) -> tuple[float, ...] | None:
    numbers = value.numbers
    return (numbers * 3 if len(numbers) == 1 else numbers[:3]) if len(numbers) not in (0, 2) else None


def _mean(values: Mapping[str, Value], names: tuple[str, ...], default: float) -> float:
    numbers = _first(values, names).numbers[:3]
    return float(np.mean(numbers)) if numbers else default
