"""MDL materials of USD stages: families, where files are found, and files that are broken."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image
from usd_stages import srgb

from internutopia.model.importers import usd
from internutopia.model.importers.load import content_key
from internutopia.model.importers.usd.appearance import DEFAULT_COLOR

Gf, Sdf, UsdGeom, UsdShade = (pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'Sdf', 'UsdGeom', 'UsdShade'))

SQUARE = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]
CORNERS = [(0, 0), (1, 0), (1, 1), (0, 1)]
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
TYPES = Sdf.ValueTypeNames
KOO = """mdl 1.4;
import ::tex::gamma_mode;
{imports}
// material MI_no = KooPbr::KooMtl(diffuse: color(1, 0, 0));
export material {name}() [[ ::anno::author("a \\"b\\" ;)"), ::anno::contributor("c") ]] = {called}(
    diffuse: {diffuse},
    reflect: color(0.04f, 0.04f, 0.04f), /* of a dielectric */
    reflect_glossiness: {gloss},
    reflection_metalness: {metal},
    opacity: {opacity},
    self_illumination: {glow},
    texmap_bump: ::state::normal()
);
"""
IMAGE = 'texture_2d("./textures/05e/1dd/quarters.png", ::tex::gamma_srgb)'
BITMAP = f'KooPbr_maps::KooPbr_bitmap(mapChannel: 1, filename: {IMAGE})'


def koo(path: Path, diffuse: str = 'color(0.2f, 0.4f, 0.6f)', **values: str) -> None:
    """Write a KooPbr material with the name of its file."""
    given = {'gloss': '0.8f', 'metal': '0.f', 'opacity': 'color(1.f)', 'glow': 'color(0.f, 0.f, 0.f)', **values}
    given = {'imports': 'import ::KooPbr::KooMtl;', 'called': 'KooPbr::KooMtl', **given}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(KOO.format(name=path.stem, diffuse=diffuse, **given))


def write_quarters(path: Path) -> None:
    """An image: red and green above blue and white."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.array([[RED, GREEN], [BLUE, WHITE]], np.uint8)).resize((16, 16), 0).save(path)


def quarters(model: mujoco.MjModel) -> list[tuple[int, ...]]:
    """Corners of a picture of one texture of 16 by 16."""
    pixels = model.tex_data.reshape(16, 16, 3)
    return [tuple(pixels[y, x].tolist()) for y in (0, -1) for x in (0, -1)]


@pytest.fixture
def scene(stage: Any, add_mesh: Callable[..., Any]) -> Any:
    """A stage whose squares have MDL materials."""
    return _Scene(stage, add_mesh)


class _Scene:
    def __init__(self, stage: Any, add_mesh: Callable[..., Any]):
        self.stage, self._add_mesh = stage, add_mesh
        self.path = Path(stage.GetRootLayer().realPath)

    def add(self, file: str, inputs: Mapping[str, Any] | None = None, name: str = 'square') -> None:
        """A square with the material of a `.mdl` file."""
        stem = Path(file).stem
        shader = self.shader(name)
        shader.SetSourceAsset(Sdf.AssetPath(file), 'mdl')
        shader.SetSourceAssetSubIdentifier(stem, 'mdl')
        kinds = {str: TYPES.Asset, float: TYPES.Float, bool: TYPES.Bool}
        lengths = {2: TYPES.Float2, 3: TYPES.Color3f, 4: TYPES.Float4}
        for key, value in (inputs or {}).items():
            kind = lengths[len(value)] if isinstance(value, tuple) else kinds[type(value)]
            shader.CreateInput(key, kind).Set(value)
        material = UsdShade.Material.Get(self.stage, f'/Looks/{name}')
        material.CreateSurfaceOutput('mdl').ConnectToSource(shader.ConnectableAPI(), 'out')

    def shader(self, name: str) -> Any:
        mesh = self._add_mesh(f'/{name}', SQUARE, [[0, 1, 2, 3]])
        UsdGeom.PrimvarsAPI(mesh).CreatePrimvar('st', TYPES.TexCoord2fArray, 'vertex').Set(CORNERS)
        material = UsdShade.Material.Define(self.stage, f'/Looks/{name}')
        UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
        return UsdShade.Shader.Define(self.stage, f'/Looks/{name}/Shader')

    def add_preview(self, name: str, image: str = '', **inputs: Any) -> None:
        """A square with a UsdPreviewSurface."""
        shader = self.shader(name)
        shader.CreateIdAttr('UsdPreviewSurface')
        for key, value in inputs.items():
            shader.CreateInput(key, TYPES.Color3f if isinstance(value, tuple) else TYPES.Float).Set(value)
        if image:
            reader = UsdShade.Shader.Define(self.stage, f'/Looks/{name}/image')
            reader.CreateIdAttr('UsdUVTexture')
            reader.CreateInput('file', TYPES.Asset).Set(image)
            reader.CreateInput('scale', TYPES.Float4).Set(Gf.Vec4f(*inputs.get('diffuseColor', (1, 1, 1)), 1))
            shader.GetInput('diffuseColor').ConnectToSource(reader.ConnectableAPI(), 'rgb')
        material = UsdShade.Material.Get(self.stage, f'/Looks/{name}')
        material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), 'surface')

    def read(self) -> tuple[mujoco.MjModel, list[str]]:
        """What the importer makes of it, and its warnings."""
        self.stage.Save()
        content_key(self.path)  # as every load does first
        spec, warnings = usd.load_with_warnings(self.path)
        return spec.compile(), warnings


def rgba(model: mujoco.MjModel, name: str = 'square') -> list[float]:
    return model.geom(f'/{name}').rgba.tolist()


def finish(model: mujoco.MjModel, name: str = 'square') -> tuple[float, float, float]:
    """Roughness, metallicity and emission."""
    material = int(model.geom(f'/{name}').matid[0])
    fields = (model.mat_roughness, model.mat_metallic, model.mat_emission)
    roughness, metallic, emission = (float(field[material]) for field in fields)
    return roughness, metallic, emission


def texture_of(model: mujoco.MjModel, name: str = 'square') -> int:
    """Its texture; -1 if it has none."""
    return int(model.mat_texid[int(model.geom(f'/{name}').matid[0]), mujoco.mjtTextureRole.mjTEXROLE_RGB])


def coordinates(model: mujoco.MjModel, name: str = 'square') -> list[tuple[float, ...]]:
    """Texture coordinates of the corners of a square, v from below, in order."""
    mesh = int(model.geom(f'/{name}').dataid[0])
    first, number = model.mesh_texcoordadr[mesh], model.mesh_texcoordnum[mesh]
    found = model.mesh_texcoord[first : first + number] * [1, -1] + [0, 1]
    return sorted(tuple(pair) for pair in np.unique(found.round(4) + 0.0, axis=0).tolist())


# families


@pytest.mark.parametrize('called', ['KooPbr::KooMtl', '::KooPbr::KooMtl', 'KooMtl'])
def test_constants_of_koopbr_are_in_its_text(scene, tmp_path, called):
    imports = 'using .::KooPbr import KooMtl;' if called == 'KooMtl' else 'import ::KooPbr::KooMtl;'
    given = {'metal': '0.5', 'opacity': '0.25f', 'glow': 'color(0.f, 0.5f, 0.f)', 'called': called, 'imports': imports}
    koo(tmp_path / 'Materials/MI_a.mdl', **given)
    scene.add('./Materials/MI_a.mdl')
    model, warnings = scene.read()
    assert not warnings
    assert rgba(model) == pytest.approx([*srgb(0.2, 0.4, 0.6), 0.25])
    assert finish(model) == pytest.approx((0.2, 0.5, 0.6 * 0.7354), abs=1e-4)  # glow: linear 0.5


@pytest.mark.parametrize(
    'diffuse',
    [
        f'{BITMAP}.tint',
        IMAGE,
        f'KooPbr_maps::KooPbr_mix(color1: color(1, 0, 0), color2: {BITMAP}.tint, mixAmount: 0.5f).tint',
        f'KooPbr_maps::KooPbr_falloff({BITMAP}.tint, color(0.f), 1.5f).tint',
        f'KooPbr_maps::KooPbr_rgb_output(source: KooPbr_maps::KooPbr_alpha_source({BITMAP}))',
        f'KooPbr_maps::KooPbr_mix(color1: {BITMAP}.tint, color2: texture_2d("./blue.png"), mixAmount: 0.9f).tint',
    ],
)
def test_the_first_bitmap_of_koopbr_is_the_texture(scene, tmp_path, diffuse):
    koo(tmp_path / 'Materials/MI_a.mdl', diffuse)
    write_quarters(tmp_path / 'Materials/textures/05e/1dd/quarters.png')
    Image.new('RGB', (16, 16), BLUE).save(tmp_path / 'Materials/blue.png')
    scene.add('./Materials/MI_a.mdl')
    model, warnings = scene.read()
    assert not warnings and model.ntex == 1
    assert rgba(model) == [1, 1, 1, 1] and quarters(model) == [RED, GREEN, BLUE, WHITE]
    assert coordinates(model) == sorted((float(u), float(v)) for u, v in CORNERS)


def test_bitmaps_are_tiled_turned_moved_and_mirrored(scene, tmp_path):
    bitmap = BITMAP.replace(
        'mapChannel: 1',
        'mapChannel: 1, U_Offset: 0.25f, V_Offset: -0.5f, U_Tiling: 2.f, V_Tiling: 3.f, W_angle: 90.f, U_angle: 0.f',
    )
    koo(tmp_path / 'MI_a.mdl', f'{bitmap}.tint')
    koo(tmp_path / 'MI_b.mdl', BITMAP.replace('mapChannel: 1', 'U_Tiling: 2.f, U_Mirror: true') + '.tint')
    write_quarters(tmp_path / 'textures/05e/1dd/quarters.png')
    scene.add('./MI_a.mdl')
    scene.add('./MI_b.mdl', name='mirrored')
    model, warnings = scene.read()
    assert not warnings
    # (u, v) -> (2 u, 3 v) -> (-3 v, 2 u) -> (-3 v + 0.25, 2 u - 0.5)
    assert coordinates(model) == sorted((-3 * v + 0.25, 2 * u - 0.5) for u, v in CORNERS)
    texture = model.tex(texture_of(model, 'mirrored'))
    assert (texture.width[0], texture.height[0]) == (32, 16)  # an image and its mirror image
    first = model.tex_data[int(texture.adr[0]) :][: 32 * 16 * 3].reshape(16, 32, 3)
    assert [tuple(first[0, x].tolist()) for x in (0, 15, 16, 31)] == [RED, GREEN, GREEN, RED]
    assert coordinates(model, 'mirrored') == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_bitmap_says_which_coordinates_it_has(scene, tmp_path):
    koo(tmp_path / 'MI_a.mdl', BITMAP.replace('mapChannel: 1', 'mapChannel: 2') + '.tint')
    write_quarters(tmp_path / 'textures/05e/1dd/quarters.png')
    scene.add('./MI_a.mdl')
    second = [(u / 2, v / 4) for u, v in CORNERS]
    mesh = UsdGeom.PrimvarsAPI(scene.stage.GetPrimAtPath('/square'))
    mesh.CreatePrimvar('st1', TYPES.TexCoord2fArray, 'vertex').Set(second)
    model, warnings = scene.read()
    assert not warnings and coordinates(model) == sorted(second)


def test_an_image_of_opacity_cuts_out(scene, tmp_path):
    koo(tmp_path / 'MI_a.mdl', 'color(1.f)', opacity='KooPbr_maps::KooPbr_bitmap(filename: texture_2d("./o.png")).mono')
    Image.fromarray(np.array([[0, 255], [255, 255]], np.uint8)).save(tmp_path / 'o.png')
    scene.add('./MI_a.mdl')
    model, _ = scene.read()
    assert model.tex_nchannel[0] == 4
    assert model.tex_data.reshape(2, 2, 4)[..., 3].tolist() == [[0, 255], [255, 255]]


def test_the_alpha_of_an_image_may_be_the_opacity(scene, tmp_path):
    call = 'KooPbr_maps::KooPbr_alpha_source(KooPbr_maps::KooPbr_bitmap(filename: texture_2d("./o.png")))'
    koo(tmp_path / 'MI_a.mdl', 'color(1.f)', opacity=f'{call}.mono')
    Image.fromarray(np.array([[RED + (0,), WHITE + (255,)]], np.uint8)).save(tmp_path / 'o.png')
    scene.add('./MI_a.mdl')
    model, _ = scene.read()
    assert model.tex_data.reshape(1, 2, 4)[..., 3].tolist() == [[0, 255]]


def test_refraction_of_koopbr_is_transparency(scene, tmp_path):
    koo(tmp_path / 'MI_a.mdl', 'color(0.f)', opacity='color(1.f), refract: color(1.f, 0.8f, 0.6f)')
    scene.add('./MI_a.mdl')
    model, _ = scene.read()
    assert rgba(model) == pytest.approx([*srgb(1, 0.8, 0.6), 1 - 0.7 * 0.8])


def test_inputs_of_ue4_templates(scene, tmp_path):
    write_quarters(tmp_path / 'Materials/Textures/quarters.png')
    image = './Materials/Textures/quarters.png'
    values = {'BaseColor_Color': (0.2, 0.4, 0.6, 1.0), 'Gloss_Color': (0.7, 0.7, 0.7, 1.0), 'Opacity': 0.5}
    values |= {'Metallic_Color': (0.25, 0.25, 0.25, 1.0), 'BaseColor_Tex': image, 'IsBaseColorTex': 0.0}
    scene.add('./Materials/Num5.mdl', values)
    values |= {'IsBaseColorTex': 1.0, 'BaseColor_UVA': (2.0, 3.0, 0.25, 0.5), 'EmissiveIntensity': 2.0}
    values |= {'Emissive_Color': (0.0, 0.25, 0.0), 'Gloss_Tex': image, 'IsGlossTex': 1.0}
    scene.add('./Materials/Num5.mdl', {**values, 'NormalTex': image, 'IsNormalTex': 1.0}, name='textured')
    tiled = {key: value for key, value in values.items() if key not in ('BaseColor_UVA', 'IsGlossTex')}
    scene.add('./Materials/Num5.mdl', {**tiled, 'BaseColor_Tiling': (2.0, 4.0)}, name='tiled')
    model, warnings = scene.read()  # the file is not there, and not needed
    assert rgba(model) == pytest.approx([*srgb(0.2, 0.4, 0.6), 0.5])
    assert finish(model) == pytest.approx((0.3, 0.25, 0)) and texture_of(model) == -1
    assert rgba(model, 'textured') == pytest.approx([*srgb(0.2, 0.4, 0.6), 0.5])  # times the texture
    assert quarters(model) == [RED, GREEN, BLUE, WHITE]
    assert coordinates(model, 'textured') == sorted((2.0 * u + 0.25, 3.0 * v + 0.5) for u, v in CORNERS)
    assert coordinates(model, 'tiled') == sorted((2.0 * u, 4.0 * v) for u, v in CORNERS)
    assert finish(model, 'textured') == pytest.approx((0.5, 0.25, 0.6 * 0.7354), abs=1e-4)  # 2 x 0.25 is 0.5
    expected = [f'image for {name} is not shown: /Looks/textured' for name in ('Gloss_Tex', 'NormalTex')]
    assert warnings == expected


def test_inputs_that_the_stage_leaves_out_are_those_of_the_template(scene, tmp_path):
    write_quarters(tmp_path / 'Materials/Textures/quarters.png')
    (tmp_path / 'Materials/Num5.mdl').write_text("""mdl 1.6;
        using .::OmniUe4Base import *;
        float3 halved(float3 a [[ anno::hidden() ]]) { if (true) { return a / 2; } return float3(0.0); }
        export material Num5(
            float4 BaseColor_Color = float4(0.5, 0.25, 1.0, 1.0) [[ anno::display_name("a, b") ]],
            uniform texture_2d BaseColor_Tex = texture_2d("./Textures/quarters.png", ::tex::gamma_srgb),
            float IsBaseColorTex = 1.0, float4 Gloss_Color = float4(0.9), uniform float Opacity = 1.0)
        [[ anno::noinline() ]]
        = let { float3 a = halved(float3(BaseColor_Color.x)); } in material(surface: material_surface());
    """)
    scene.add('./Materials/Num5.mdl', {'Opacity': 0.5})
    scene.add('./Materials/Num5.mdl', {'IsBaseColorTex': 0.0, 'BaseColor_Color': (1.0, 0.0, 0.0)}, name='plain')
    model, warnings = scene.read()
    assert not warnings
    assert rgba(model) == pytest.approx([*srgb(0.5, 0.25, 1.0), 0.5]) and quarters(model)[0] == RED
    assert rgba(model, 'plain') == pytest.approx([1, 0, 0, 1])
    assert finish(model)[0] == pytest.approx(0.1) and texture_of(model, 'plain') == -1


def test_glass_grid_and_sky(scene):
    scene.add('OmniGlass.mdl', {'glass_color': (0.9, 1.0, 0.9)}, name='coloured')
    scene.add('OmniGlass.mdl', name='glass')
    scene.add('./Materials/Num_Glass.mdl', {'BaseColor_Color': (0.1, 0.2, 0.3)}, name='template')
    scene.add('./Materials/WorldGridMaterial.mdl', name='grid')
    scene.add('./Materials/DayMaterial.mdl', name='day')
    model, warnings = scene.read()
    assert not warnings
    assert rgba(model, 'coloured') == pytest.approx([*srgb(0.9, 1, 0.9), 0.3])
    assert rgba(model, 'glass') == pytest.approx([1, 1, 1, 0.3])
    assert rgba(model, 'template') == pytest.approx([*srgb(0.1, 0.2, 0.3), 0.3])
    red, green, blue, alpha = rgba(model, 'grid')
    assert red == green == blue == pytest.approx(0.5, abs=1e-4) and alpha == 1
    assert rgba(model, 'day') == [1, 1, 1, 1] and finish(model, 'day')[2] > 0


def test_a_file_that_calls_omnipbr_says_its_arguments(scene, tmp_path):
    write_quarters(tmp_path / 'quarters.png')
    (tmp_path / 'Oak.mdl').write_text("""mdl 1.4;
        import ::OmniPBR::OmniPBR; import ::OmniPBR::*;
        export material Oak(*) [[ anno::display_name("Oak") ]] = OmniPBR(
            diffuse_color_constant: color(0.1f, 0.2f, 0.3f),
            diffuse_tint: color(0.5f, 1.f, 1.f), diffuse_texture: texture_2d("./quarters.png", ::tex::gamma_srgb),
            texture_scale: float2(2.f, 2.f), enable_opacity: false, opacity_constant: 0.5f,
            reflection_roughness_constant: 0.75f);
    """)
    scene.add('./Oak.mdl')
    model, warnings = scene.read()
    assert not warnings and rgba(model) == pytest.approx([*srgb(0.5), 1, 1, 1]) and quarters(model)[0] == RED
    assert finish(model)[0] == 0.75 and max(coordinates(model)) == (2, 2)


@pytest.mark.parametrize('family', ['ue4', 'koopbr', 'glass', 'grid'])
def test_pictures_are_those_of_the_same_preview_surface(scene, tmp_path, render, family):
    """Mean colours of a square differ by less than 5 %."""
    write_quarters(tmp_path / 'textures/05e/1dd/quarters.png')
    image, tint = './textures/05e/1dd/quarters.png', (0.8, 0.6, 0.7)
    if family == 'ue4':
        inputs = {'BaseColor_Color': tint, 'BaseColor_Tex': image, 'IsBaseColorTex': 1.0}
        scene.add('./Num1.mdl', {**inputs, 'Gloss_Color': (0.4, 0.4, 0.4), 'Metallic_Color': (0.2, 0.2, 0.2)})
        scene.add_preview('same', image, diffuseColor=tint, roughness=0.6, metallic=0.2)
    elif family == 'koopbr':
        koo(tmp_path / 'MI_a.mdl', f'{BITMAP}.tint', gloss='0.4f', metal='0.2f')
        scene.add('./MI_a.mdl')
        scene.add_preview('same', image, diffuseColor=(1, 1, 1), roughness=0.6, metallic=0.2)
    elif family == 'glass':
        scene.add('OmniGlass.mdl', {'glass_color': tint, 'frosting_roughness': 0.1})
        scene.add_preview('same', diffuseColor=tint, roughness=0.1, opacity=0.3)
    else:
        scene.add('./WorldGridMaterial.mdl')
        scene.add_preview('same', diffuseColor=(0.214, 0.214, 0.214), roughness=0.5)
    same = UsdGeom.Xformable(scene.stage.GetPrimAtPath('/same'))
    same.AddTranslateOp().Set(Gf.Vec3d(10, 0, 0))
    model, warnings = scene.read()
    assert not warnings
    means = [render(model, (x, 0, 3), np.eye(3), 0.3).mean(axis=(0, 1)) for x in (0, 10)]
    assert means[0].min() > 5
    np.testing.assert_allclose(means[0], means[1], atol=0.05 * 255)


# where files are


def red_koo(path: Path) -> None:
    koo(path, 'color(0.75f, 0.f, 0.f)')


@pytest.mark.parametrize(
    'place',
    [
        'scenes/one/Materials/MI_a.mdl',  # as the stage says
        'elsewhere/MI_a.mdl',  # MDL_SYSTEM_PATH
        'elsewhere/Materials/MI_a.mdl',
        'Materials/MI_a.mdl',  # up the tree
        'scenes/Material/mdl/MI_a.mdl',
        'mdl/MI_a.mdl',
        'scenes/one/materials/mi_A.MDL',  # in another case
        'Materials/mi_a.mdl',
    ],
)
def test_files_are_found(tmp_path, monkeypatch, place):
    red_koo(tmp_path / place)
    text = (tmp_path / place).read_text().replace('mi_a', 'MI_a').replace('mi_A', 'MI_a')
    (tmp_path / place).write_text(text)
    (tmp_path / 'elsewhere').mkdir(exist_ok=True)
    monkeypatch.setenv('MDL_SYSTEM_PATH', os.pathsep.join([str(tmp_path / 'nowhere'), str(tmp_path / 'elsewhere')]))
    model, warnings = _read_in(tmp_path / 'scenes/one', './Materials/MI_a.mdl')
    assert not warnings and rgba(model) == pytest.approx([*srgb(0.75), 0, 0, 1])


def test_the_place_that_the_stage_says_comes_first(tmp_path, monkeypatch):
    koo(tmp_path / 'scenes/one/Materials/MI_a.mdl', 'color(0.f, 0.f, 1.f)')
    red_koo(tmp_path / 'elsewhere/MI_a.mdl')
    red_koo(tmp_path / 'Materials/MI_a.mdl')
    monkeypatch.setenv('MDL_SYSTEM_PATH', str(tmp_path / 'elsewhere'))
    assert rgba(_read_in(tmp_path / 'scenes/one', './Materials/MI_a.mdl')[0])[:3] == [0, 0, 1]
    (tmp_path / 'scenes/one/Materials/MI_a.mdl').unlink()
    koo(tmp_path / 'elsewhere/MI_a.mdl', 'color(0.f, 1.f, 0.f)')
    assert rgba(_read_in(tmp_path / 'scenes/one', './Materials/MI_a.mdl')[0])[:3] == [0, 1, 0]


def test_near_folders_come_before_those_further_up(tmp_path):
    red_koo(tmp_path / 'Materials/MI_a.mdl')
    koo(tmp_path / 'scenes/Materials/MI_a.mdl', 'color(0.f, 1.f, 0.f)')
    assert rgba(_read_in(tmp_path / 'scenes/one', './MI_a.mdl')[0])[:3] == [0, 1, 0]


def test_a_name_in_another_case_is_the_last_resort(tmp_path):
    red_koo(tmp_path / 'scenes/one/Materials/mi_a.mdl')
    koo(tmp_path / 'Materials/MI_a.mdl', 'color(0.f, 1.f, 0.f)')
    assert rgba(_read_in(tmp_path / 'scenes/one', './Materials/MI_a.mdl')[0])[:3] == [0, 1, 0]


def test_an_image_is_first_where_its_file_says(tmp_path, monkeypatch):
    place = 'textures/05e/1dd/quarters.png'
    koo(tmp_path / 'scenes/one/MI_a.mdl', f'{BITMAP}.tint')
    write_quarters(tmp_path / 'scenes/one' / place)
    for folder in ('elsewhere', 'Materials'):
        (tmp_path / folder / place).parent.mkdir(parents=True)
        Image.new('RGB', (16, 16), BLUE).save(tmp_path / folder / place)
    monkeypatch.setenv('MDL_SYSTEM_PATH', str(tmp_path / 'elsewhere'))
    assert quarters(_read_in(tmp_path / 'scenes/one', './MI_a.mdl')[0]) == [RED, GREEN, BLUE, WHITE]


@pytest.mark.parametrize('flat', [True, False])
def test_links_are_followed_also_if_they_became_text(tmp_path, flat):
    """As `models/<category>/<hash>/Materials` of GRScenes; images of both kinds of materials lie behind it, too."""
    koo(tmp_path / 'library/MI_a.mdl', f'{BITMAP}.tint')  # no name that is looked for up the tree
    write_quarters(tmp_path / 'library/textures/05e/1dd/quarters.png')
    folder = tmp_path / 'models/chair/0123'
    folder.mkdir(parents=True)
    link = folder / 'Materials'
    link.write_text('../../../library\n') if flat else link.symlink_to('../../../library')
    model, warnings = _read_in(folder, './Materials/MI_a.mdl')
    assert not warnings and quarters(model) == [RED, GREEN, BLUE, WHITE]
    image = './Materials/textures/05e/1dd/quarters.png'
    model, warnings = _read_in(folder, './Materials/Num1.mdl', {'BaseColor_Tex': image, 'IsBaseColorTex': 1.0})
    assert not warnings and quarters(model) == [RED, GREEN, BLUE, WHITE]


def test_models_that_are_referred_to_say_names_relative_to_their_own_file(tmp_path):
    red_koo(tmp_path / 'models/chair/Materials/MI_a.mdl')
    _stage_in(tmp_path / 'models/chair', './Materials/MI_a.mdl')
    (tmp_path / 'scenes').mkdir()
    (tmp_path / 'scenes/home.usda').write_text(
        '#usda 1.0\n(upAxis = "Z"\nmetersPerUnit = 1)\ndef Xform "chair" (instanceable = true\n'
        'prepend references = @../models/chair/stage.usda@</World>) {}\n'
    )
    spec, warnings = usd.load_with_warnings(tmp_path / 'scenes/home.usda')
    assert not warnings
    assert spec.compile().geom('/chair/square').rgba.tolist() == pytest.approx([*srgb(0.75), 0, 0, 1])


def test_what_is_missing_is_told_once_and_grey(tmp_path, monkeypatch):
    monkeypatch.setenv('MDL_SYSTEM_PATH', str(tmp_path))
    names = [f'./Materials/MI_{i}.mdl' for i in range(8)]
    text = '\n'.join(_square(f'a_{i}', name) + _square(f'b_{i}', name) for i, name in enumerate(names))
    text += _square('ready', './Materials/Num1.mdl', 'color3f inputs:BaseColor_Color = (0, 0, 1)')
    path = _write(tmp_path, text)
    spec, warnings = usd.load_with_warnings(path)
    model = spec.compile()
    assert len(warnings) == 1
    assert warnings[0].startswith('materials are not found (8), which leaves meshes grey (16); searched in ')
    assert str(tmp_path) in warnings[0] and 'MDL_SYSTEM_PATH' in warnings[0] and './Materials/MI_0.mdl' in warnings[0]
    assert rgba(model, 'World/a_0')[:3] == pytest.approx(DEFAULT_COLOR) == rgba(model, 'World/b_7')[:3]
    assert rgba(model, 'World/ready') == [0, 0, 1, 1]


def test_missing_images_are_told_in_one_line(tmp_path):
    koo(tmp_path / 'MI_a.mdl', f'{BITMAP}.tint')
    koo(tmp_path / 'MI_b.mdl', f'{BITMAP.replace("quarters", "halves")}.tint')
    path = _write(tmp_path, _square('a', './MI_a.mdl') + _square('b', './MI_b.mdl'))
    _, warnings = usd.load_with_warnings(path)
    assert len(warnings) == 1 and 'quarters.png' in warnings[0] and 'halves.png' in warnings[0]


def test_materials_are_part_of_the_content(tmp_path, monkeypatch):
    path = _write(tmp_path / 'scene', _square('square', './Materials/MI_a.mdl'))
    keys = [content_key(path)]
    koo(tmp_path / 'elsewhere/MI_a.mdl', f'{BITMAP}.tint')
    keys.append(content_key(path))
    assert keys[0] == keys[1]
    monkeypatch.setenv('MDL_SYSTEM_PATH', str(tmp_path / 'elsewhere'))
    keys.append(content_key(path))
    write_quarters(tmp_path / 'elsewhere/textures/05e/1dd/quarters.png')
    keys.append(content_key(path))
    red_koo(tmp_path / 'elsewhere/MI_a.mdl')
    keys.append(content_key(path))
    assert len(set(keys[1:])) == 4
    monkeypatch.delenv('MDL_SYSTEM_PATH')
    assert content_key(path) == keys[0]
    koo(tmp_path / 'scene/Materials/MI_a.mdl')
    assert content_key(path) not in keys


# files that are broken


def _good() -> str:
    return KOO.format(
        **{'imports': '', 'name': 'MI_a', 'called': 'KooMtl', 'diffuse': BITMAP, 'gloss': '1', 'metal': '0'},
        **{'opacity': '1', 'glow': 'color(0)'},
    )


def _truncated(path: Path) -> None:
    path.write_text(_good()[:330])


def _of_itself(path: Path) -> None:
    path.write_text('mdl 1.4; using .::MI_b import *; export material MI_a() = MI_b();')
    path.with_name('MI_b.mdl').write_text('mdl 1.4; using .::MI_a import *; export material MI_b() = MI_a();')


def _huge(path: Path) -> None:
    with path.open('wb') as file:
        file.write(_good().encode())
        file.truncate(100_000_000)


def _sealed(path: Path) -> None:
    path.write_text(_good())
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip('root may read every file')


BROKEN: dict[str, tuple[Callable[[Path], Any], str]] = {
    'truncated': (_truncated, 'MI_a.mdl:7: the file ends too early'),
    'made of itself': (_of_itself, 'MI_b'),
    '100 MB': (_huge, 'more than the 1,048,576 bytes'),
    'binary': (lambda path: path.write_bytes(bytes(range(256)) * 64), 'not a text'),
    'empty': (lambda path: path.write_bytes(b''), 'it has no material MI_a'),
    'noise': (lambda path: path.write_text('mdl 1.4;\nexport material MI_a() = KooMtl(diffuse: ;);'), 'MI_a.mdl:2:'),
    'a comment without end': (lambda path: path.write_text('/*' + _good().replace('*/', '')), "'/' is no MDL"),
    'nested deep': (lambda path: path.write_text('material MI_a = ' + 'f(' * 10_000), 'inside each other'),
    'open brackets': (lambda path: path.write_text('f' + '(' * 90_000), 'ends too early'),
    'a long sum': (
        lambda path: path.write_text(f'material MI_a = Koo(a: {"1+" * 200_000}1);'),
        'more than the 100,000',
    ),
    'as long as may be': (lambda path: path.write_text(f'material MI_a = Koo(a: {"1+" * 40_000}1);'), ''),
    'folder': (lambda path: path.mkdir(), 'not a regular file'),
    'device': (lambda path: os.mkfifo(path), 'not a regular file'),
    'unreadable': (_sealed, 'cannot be read'),
    'links to itself': (lambda path: path.symlink_to(path.name), 'materials are not found (1)'),
    'text link to itself': (lambda path: path.write_text('./MI_a.mdl'), 'it has no material MI_a'),
}


@pytest.mark.parametrize('kind', BROKEN)
def test_broken_files_cost_one_warning(tmp_path, kind):
    make, message = BROKEN[kind]
    make(tmp_path / 'MI_a.mdl')
    squares = [_square(f'square_{i}', './MI_a.mdl') for i in range(3)]
    path = _write(tmp_path, '\n'.join(squares) + _square('fine', 'OmniPBR.mdl'))
    content_key(path)
    spec, warnings = usd.load_with_warnings(path)
    model = spec.compile()
    assert len(warnings) == (1 if message else 0)
    assert message in ''.join(warnings) and (not message or 'MI_a.mdl' in warnings[0] or 'MI_b' in warnings[0])
    assert rgba(model, 'World/square_0')[:3] == pytest.approx(DEFAULT_COLOR)


def test_a_broken_file_leaves_the_inputs_of_the_shader(tmp_path):
    (tmp_path / 'Num1.mdl').write_text('mdl 1.4; material Num1(')
    path = _write(tmp_path, _square('square', './Num1.mdl', 'color3f inputs:BaseColor_Color = (0, 0, 1)'))
    spec, warnings = usd.load_with_warnings(path)
    assert len(warnings) == 1 and 'Num1.mdl:1' in warnings[0]
    assert rgba(spec.compile(), 'World/square') == [0, 0, 1, 1]


def _square(name: str, file: str, inputs: str = '') -> str:
    points, coordinates = (', '.join(map(str, values)) for values in (SQUARE, CORNERS))
    return f"""
    def Material "look_{name}" {{
        token outputs:mdl:surface.connect = </World/look_{name}/Shader.outputs:out>
        def Shader "Shader" {{
            uniform token info:implementationSource = "sourceAsset"
            uniform asset info:mdl:sourceAsset = @{file}@
            uniform token info:mdl:sourceAsset:subIdentifier = "{Path(file).stem}"
            {inputs}
            token outputs:out
        }}
    }}
    def Mesh "{name}" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
        point3f[] points = [{points}]
        int[] faceVertexCounts = [4]
        int[] faceVertexIndices = [0, 1, 2, 3]
        texCoord2f[] primvars:st = [{coordinates}] (interpolation = "vertex")
        rel material:binding = </World/look_{name}>
    }}"""


def _write(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / 'stage.usda'
    head = '#usda 1.0\n(defaultPrim = "World"\nmetersPerUnit = 1\nupAxis = "Z")\n'
    path.write_text(f'{head}def Xform "World" {{{text}\n}}\n')
    return path


def _stage_in(folder: Path, file: str, inputs: Mapping[str, Any] | None = None) -> Path:
    lines = (
        f'asset inputs:{name} = @{value}@' if isinstance(value, str) else f'float inputs:{name} = {value}'
        for name, value in (inputs or {}).items()
    )
    return _write(folder, _square('square', file, '\n'.join(lines)))


def _read_in(folder: Path, file: str, inputs: Mapping[str, Any] | None = None) -> tuple[mujoco.MjModel, list[str]]:
    """A square at `/square` on a stage in a folder."""
    path = _stage_in(folder, file, inputs)
    path.write_text(path.read_text().replace('/World/', '/').replace('def Xform "World" {', '').rpartition('}')[0])
    spec, warnings = usd.load_with_warnings(path)
    return spec.compile(), warnings
