"""Materials of a home: their appearance, and how it is written: as MDL text, shader inputs, or UsdPreviewSurface.

An `Appearance` is the truth that all of these say. The families of MDL are those of GRScenes: templates whose values
are inputs of the shader (`Num*.mdl`), `KooPbr` calls whose values are in the text of the `.mdl`, special ones (glass,
grid, sky) that have hardly any, and ordinary ones (`OmniPBR`, `UsdPreviewSurface`).
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Rgb = tuple[float, float, float]
Family = Literal['template', 'koopbr', 'special', 'ordinary']
Kind = Literal['Num', 'KooMtl', 'OmniGlass', 'WorldGridMaterial', 'DayMaterial', 'OmniPBR', 'UsdPreviewSurface']

FAMILIES: dict[Kind, Family] = {
    'Num': 'template',
    'KooMtl': 'koopbr',
    'OmniGlass': 'special',
    'WorldGridMaterial': 'special',
    'DayMaterial': 'special',
    'OmniPBR': 'ordinary',
    'UsdPreviewSurface': 'ordinary',
}
TEMPLATES = ('Num01', 'Num02', 'Num03', 'Num04')
_KINDS: tuple[Kind, ...] = ('Num', 'KooMtl', 'Num', 'OmniPBR', 'KooMtl', 'Num', 'UsdPreviewSurface', 'Num')
_KIND_OF_ROLE: Mapping[str, tuple[Kind, ...]] = {
    'paint': ('Num',),
    'glass': ('OmniGlass', 'Num'),
    'grid': ('WorldGridMaterial',),
    'day': ('DayMaterial',),
}
_AT_MOST = {'glass': 8, 'grid': 1, 'day': 1}  # materials of a role
_TEXTURED = frozenset({'floor', 'wood', 'cloth', 'paint', 'paper'})  # roles


@dataclass(frozen=True)
class Texture:
    """An image on a surface. It shows at `uv`: the image at `rotate(uv * tiling, rotation) + offset`.

    Attributes:
        file: relative to the folder of the materials.
        tiling: how often it is repeated along u and v.
        offset: in images.
        rotation: counter-clockwise [deg].
    """

    file: str
    tiling: tuple[float, float] = (1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0


@dataclass(frozen=True)
class Appearance:
    """Appearance of a material.

    Attributes:
        name: of the material's prim.
        kind: of the material that has it.
        role: what it is used for.
        color: linear RGB, times the texture if there is one.
        texture: of the base colour, in sRGB.
        roughness, metalness, opacity: 0 to 1.
        emission: linear RGB.
    """

    name: str
    kind: Kind
    role: str
    color: Rgb
    texture: Texture | None = None
    roughness: float = 0.5
    metalness: float = 0.0
    opacity: float = 1.0
    emission: Rgb = (0.0, 0.0, 0.0)

    @property
    def family(self) -> Family:
        """One of the four families."""
        return FAMILIES[self.kind]


class _Palette(NamedTuple):
    """Range of hue, saturation and value in sRGB, and of roughness, of a role; and what all of the role have."""

    hue: tuple[float, float]
    saturation: tuple[float, float]
    value: tuple[float, float]
    roughness: tuple[float, float]
    metalness: float = 0.0
    opacity: tuple[float, float] = (1.0, 1.0)
    glow: float = 0.0


_PALETTES = {
    'wood': _Palette((0.05, 0.1), (0.3, 0.6), (0.35, 0.75), (0.4, 0.7)),
    'metal': _Palette((0.5, 0.7), (0.0, 0.06), (0.6, 0.85), (0.2, 0.45), metalness=1.0),
    'cloth': _Palette((0.0, 1.0), (0.15, 0.6), (0.35, 0.8), (0.8, 0.95)),
    'paint': _Palette((0.0, 1.0), (0.0, 0.12), (0.8, 0.95), (0.7, 0.9)),
    'floor': _Palette((0.05, 0.12), (0.15, 0.5), (0.4, 0.8), (0.4, 0.7)),
    'ceramic': _Palette((0.0, 1.0), (0.0, 0.3), (0.75, 0.95), (0.1, 0.25)),
    'glass': _Palette((0.4, 0.6), (0.03, 0.12), (0.85, 0.95), (0.02, 0.1), opacity=(0.2, 0.4)),
    'plastic': _Palette((0.0, 1.0), (0.0, 0.8), (0.15, 0.9), (0.3, 0.6)),
    'paper': _Palette((0.0, 1.0), (0.2, 0.7), (0.4, 0.9), (0.7, 0.9)),
    'lampshade': _Palette((0.08, 0.14), (0.05, 0.2), (0.9, 0.97), (0.7, 0.9), glow=0.4),
    'leaf': _Palette((0.25, 0.4), (0.4, 0.7), (0.25, 0.55), (0.6, 0.8)),
    'grid': _Palette((0.0, 0.0), (0.0, 0.0), (0.5, 0.5), (0.8, 0.8)),
    'day': _Palette((0.0, 0.0), (0.0, 0.0), (1.0, 1.0), (1.0, 1.0), glow=1.0),
}


@dataclass
class Materials:
    """The materials of a home.

    Attributes:
        appearances: by name.
        by_role: names by role.
    """

    appearances: dict[str, Appearance] = field(default_factory=dict)
    by_role: dict[str, list[str]] = field(default_factory=dict)


def choose_materials(seed: int, roles: Mapping[str, int], count: int, textures: int) -> Materials:
    """Share out materials to roles, the more the more uses one has, and give each its appearance.

    Args:
        seed: of the random numbers.
        roles: how many materials a role can use.
        count: materials in all.
        textures: how many of them have one, each its own.

    Raises:
        ValueError: there are too few uses for so many materials, or too few materials for the textures.
    """
    number = dict.fromkeys(sorted(roles), 1)
    for _ in range(count - len(number)):
        open_roles = [role for role in number if number[role] < min(roles[role], _AT_MOST.get(role, count))]
        if not open_roles:
            raise ValueError(f'{sum(roles.values())} uses are too few for {count} materials')
        number[max(open_roles, key=lambda role: roles[role] ** 0.5 / number[role])] += 1
    kinds = {role: cycle(_KIND_OF_ROLE.get(role, _KINDS[k % 3 :] + _KINDS[: k % 3])) for k, role in enumerate(number)}
    order = [role for step in range(max(number.values())) for role in number if step < number[role]]
    found, left = Materials(), textures
    for index, role in enumerate(order):
        textured = left > 0 and role in _TEXTURED
        left -= textured
        appearance = sample_appearance(
            np.random.default_rng([seed, 1, index]), index, role, next(kinds[role]), textured=textured
        )
        found.appearances[appearance.name] = appearance
        found.by_role.setdefault(role, []).append(appearance.name)
    if left:
        raise ValueError(f'{left} textures are on no material')
    return found


def sample_appearance(rng: np.random.Generator, index: int, role: str, kind: Kind, *, textured: bool) -> Appearance:
    """Sample the appearance of a material of a role, as far as its kind can state it."""
    palette = _PALETTES[role]
    token = rng.bytes(12).hex()
    name = kind if kind in ('WorldGridMaterial', 'DayMaterial') else f'MI_{role}_{token}'
    roughness, opacity = (round(float(rng.uniform(*bounds)), 2) for bounds in (palette.roughness, palette.opacity))
    color, texture = _linear(_color(rng, palette)), None
    if textured:
        koo = kind == 'KooMtl'
        file = f'textures/{token[:3]}/{token[3:6]}/{token}.jpg' if koo else f'Textures/T_{role}_{index:03}.png'
        tiling = rng.choice([0.5, 1.0, 2.0], 2)
        texture = Texture(file, (float(tiling[0]), float(tiling[1])))
        tint = rng.uniform(0.7, 1.0, 3)
        color = (1.0, 1.0, 1.0) if koo or kind == 'UsdPreviewSurface' else _rounded(tint)
        if koo:
            offset, rotation = rng.choice([0.0, 0.25, 0.5], 2), rng.choice([0.0, 90.0, 45.0])
            texture = Texture(file, texture.tiling, (float(offset[0]), float(offset[1])), float(rotation))
    emission = _rounded(palette.glow * np.array(color))
    return Appearance(name, kind, role, color, texture, roughness, palette.metalness, opacity, emission)


def texture_image(rng: np.random.Generator, role: str, pixels: int) -> NDArray[np.uint8]:
    """The image of a texture that can be tiled, `(pixels, pixels, 3)` sRGB: planks, weaving or grain by role."""
    base = np.array(_color(rng, _PALETTES[role]))
    x, y = np.meshgrid(*2 * [np.arange(pixels) / pixels])
    k, m = rng.integers(1, 6, 2)
    waves = np.sin(2 * np.pi * (k * x + y)) + np.sin(2 * np.pi * (m * y - x))
    if role in ('wood', 'floor'):
        planks = rng.uniform(-0.12, 0.12, 8)[np.minimum((8 * x).astype(int), 7)]
        shade = planks + 0.04 * np.sin(2 * np.pi * (3 * y + waves / 4)) - 0.25 * (8 * x % 1 < 0.04)
    elif role == 'cloth':
        shade = 0.12 * np.sign(np.sin(16 * np.pi * x) * np.sin(16 * np.pi * y)) + 0.02 * waves
    else:
        shade = 0.02 * waves
    image = base * (1 + shade[..., None]) + rng.normal(0, 0.01, (pixels, pixels, 1))
    return (255 * np.clip(image, 0, 1)).astype(np.uint8)


def write_materials(folder: Path, materials: Materials, seed: int, pixels: int) -> None:
    """Write the `.mdl` files and textures into the folder of the materials."""
    for name, text in _library():
        (folder / name).write_text(text)
    for index, appearance in enumerate(materials.appearances.values()):
        if appearance.kind == 'KooMtl':
            (folder / f'{appearance.name}.mdl').write_text(koo_text(appearance, index))
        if appearance.texture is not None:
            path = folder / appearance.texture.file
            path.parent.mkdir(parents=True, exist_ok=True)
            image = texture_image(np.random.default_rng([seed, 2, index]), appearance.role, pixels)
            Image.fromarray(image).save(path, quality=90, compress_level=1)  # of JPEG, of PNG


def koo_text(appearance: Appearance, variant: int = 0) -> str:
    """The text of a `.mdl` of the KooPbr family; `variant`: one of several ways to write the same."""
    prefix, imports = (
        ('KooPbr::', 'import ::KooPbr::KooMtl;') if variant % 2 else ('', 'using .::KooPbr import KooMtl;')
    )
    diffuse = _color_text(appearance.color)
    if appearance.texture is not None:
        (u, v), (du, dv) = appearance.texture.tiling, appearance.texture.offset
        bitmap = (
            'KooPbr_maps::KooPbr_bitmap(\n'
            f'      mapChannel: 1, U_Offset: {du}f, V_Offset: {dv}f, U_Tiling: {u}f, V_Tiling: {v}f,\n'
            '      U_Mirror: false, V_Mirror: false, U_Tile: true, V_Tile: true,\n'
            f'      U_angle: 0.f, V_angle: 0.f, W_angle: {appearance.texture.rotation}f, clip: false,\n'
            f'      filename: texture_2d("./{appearance.texture.file}", ::tex::gamma_srgb))'
        )
        wrapped = {
            1: f'KooPbr_maps::KooPbr_mix(color1: {bitmap}.tint, color2: color(1.f, 1.f, 1.f), mixAmount: 0.f)',
            2: f'KooPbr_maps::KooPbr_falloff(color1: {bitmap}.tint, color2: color(1.f, 1.f, 1.f), fallofftype: 0)',
        }
        diffuse = f'{wrapped.get(variant % 5, bitmap)}.tint'
    gloss = f'{round(1 - appearance.roughness, 4)}f'
    if variant % 4 == 3:
        gloss = f'KooPbr_maps::KooPbr_alpha_source(source: {gloss}).mono'
    return f"""mdl 1.4;

import ::tex::gamma_mode;
import ::state::normal;
{imports}
import ::KooPbr_maps::*;

export material {appearance.name}() = {prefix}KooMtl(
    diffuse: {diffuse},
    reflect: color(0.04f, 0.04f, 0.04f),
    reflect_glossiness: {gloss},
    reflection_metalness: {appearance.metalness}f,
    opacity: color({appearance.opacity}f),
    self_illumination: {_color_text(appearance.emission)},
    texmap_bump: ::state::normal()
);
"""


def _color_text(color: Rgb) -> str:
    return f'color({", ".join(f"{c}f" for c in color)})'


def _library() -> Iterator[tuple[str, str]]:
    """The modules that are called, as far as their names go: nothing here computes light."""
    numbers = 'float reflect_glossiness = 0.5f, float reflection_metalness = 0.f'
    colors = 'color diffuse = color(0.8f), color reflect = color(0.04f), color opacity = color(1.f)'
    yield (
        'KooPbr.mdl',
        f'mdl 1.4;\n\nexport material KooMtl({colors}, {numbers}, color self_illumination = color(0.f),\n'
        '    float3 texmap_bump = float3(0.f)) = material();\n',
    )
    yield 'KooPbr_maps.mdl', 'mdl 1.4;\n\nexport struct KooPbr_map { color tint; float mono; };\n'
    yield 'OmniUe4Base.mdl', 'mdl 1.4;\n\nexport float gloss_to_roughness(float gloss) { return 1.f - gloss; }\n'
    inputs = ', '.join(
        [f'color {name}_Color = color({value}f)' for name, value in _TEMPLATE_COLORS.items()]
        + [f'float Is{name}Tex = 0.f' for name in ('BaseColor', 'Gloss', 'Metallic', 'Normal')]
        + [f'uniform texture_2d {name}Tex = texture_2d()' for name in ('BaseColor_', 'Normal')]
        + ['float2 BaseColor_Tiling = float2(1.f, 1.f)', 'float Opacity = 1.f', 'float EmissiveIntensity = 0.f']
    )
    for name in TEMPLATES:
        yield f'{name}.mdl', f'mdl 1.4;\n\nimport ::OmniUe4Base::*;\n\nexport material {name}({inputs}) = material();\n'
    for name in ('WorldGridMaterial', 'DayMaterial'):
        yield f'{name}.mdl', f'mdl 1.4;\n\nexport material {name}() = material();\n'


_TEMPLATE_COLORS = {'BaseColor': 0.8, 'Gloss': 0.5, 'Metallic': 0.0, 'Specular': 0.5, 'Emissive': 0.0}


def _color(rng: np.random.Generator, palette: _Palette) -> Rgb:
    """An sRGB colour of a role."""
    return colorsys.hsv_to_rgb(*(float(rng.uniform(*bounds)) for bounds in palette[:3]))


def _linear(color: Rgb) -> Rgb:
    """An sRGB colour in linear RGB (IEC 61966-2-1)."""
    c = np.array(color)
    return _rounded(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4))


def _rounded(color: NDArray[np.float64]) -> Rgb:
    red, green, blue = (round(float(c), 4) for c in color)
    return red, green, blue
