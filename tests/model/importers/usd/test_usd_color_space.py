"""Colours of USD are linear and shown in sRGB, images are in sRGB: the same grey looks the same in all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

from internutopia.model.importers import usd

pytest.importorskip('pxr.Usd')

GREY = 0.2159  # linear; 128 of 255 in sRGB
HALF = 128 / 255

PREVIEW = """
uniform token info:id = "UsdPreviewSurface"
color3f inputs:diffuseColor{value}
float inputs:roughness = 1
token outputs:surface
"""
MDL = """
uniform token info:implementationSource = "sourceAsset"
uniform asset info:mdl:sourceAsset = @{file}@
uniform token info:mdl:sourceAsset:subIdentifier = "{name}"
{inputs}
token outputs:out
"""


def preview(value: str = f' = ({GREY}, {GREY}, {GREY})', more: str = '') -> str:
    shader = f'def Shader "shader" {{ {PREVIEW.format(value=value)} }}'
    return f'token outputs:surface.connect = </World/look/shader.outputs:surface>\n{shader}\n{more}'


def mdl(file: str, inputs: str = '') -> str:
    text = MDL.format(file=file, name=Path(file).stem, inputs=inputs)
    return f'token outputs:mdl:surface.connect = </World/look/shader.outputs:out>\ndef Shader "shader" {{ {text} }}'


def image(of_reader: str = '', metadata: str = '', scale: str = '1, 1, 1') -> str:
    """A preview surface with the image `grey.png`."""
    reader = f"""
    def Shader "reader" {{
        uniform token info:id = "UsdUVTexture"
        asset inputs:file = @grey.png@ {metadata}
        float4 inputs:scale = ({scale}, 1)
        {of_reader}
        float3 outputs:rgb
    }}"""
    return preview('.connect = </World/look/reader.outputs:rgb>', reader)


@pytest.fixture
def square(tmp_path: Path) -> Any:
    """A square with a material, and a grey image of the value of each of its pixels; the compiled model."""

    def square(look: str, pixel: int = 128, primvars: str = '') -> mujoco.MjModel:
        Image.new('RGB', (2, 2), (pixel, pixel, pixel)).save(tmp_path / 'grey.png')
        path = tmp_path / 'stage.usda'
        path.write_text(f"""#usda 1.0
        (defaultPrim = "World"
        metersPerUnit = 1
        upAxis = "Z")
        def Xform "World" {{
            def Mesh "square" (prepend apiSchemas = ["MaterialBindingAPI"]) {{
                point3f[] points = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]
                int[] faceVertexCounts = [4]
                int[] faceVertexIndices = [0, 1, 2, 3]
                texCoord2f[] primvars:st = [(0, 0), (1, 0), (1, 1), (0, 1)] (interpolation = "vertex")
                {primvars}
                rel material:binding = </World/look>
            }}
            def Material "look" {{
                {look}
            }}
        }}
        """)
        spec, warnings = usd.load_with_warnings(path)
        assert not warnings
        return spec.compile()

    return square


def shown(model: mujoco.MjModel) -> float:
    """Value that MuJoCo's renderer shows without light, of a colour times a texture."""
    pixels = model.tex_data[0] / 255 if model.ntex else 1.0
    red, green, blue, _ = model.geom('/World/square').rgba
    assert red == green == blue
    return float(red * pixels)


COLOR = f'color3f inputs:{{}} = ({GREY}, {GREY}, {GREY})'
LOOKS = {
    'UsdPreviewSurface': preview(),
    'OmniPBR': mdl('OmniPBR.mdl', COLOR.format('diffuse_color_constant')),
    'UE4 template': mdl('Num1.mdl', COLOR.format('BaseColor_Color')),
    'KooPbr': mdl('MI_a.mdl'),
    'WorldGridMaterial': mdl('WorldGridMaterial.mdl'),
    'image': image(),
    'image of OmniPBR': mdl('OmniPBR.mdl', 'asset inputs:diffuse_texture = @grey.png@ (colorSpace = "sRGB")'),
}


@pytest.mark.parametrize('look', LOOKS)
def test_the_same_grey_looks_the_same_in_all_materials(square, tmp_path, look):
    (tmp_path / 'MI_a.mdl').write_text(f'material MI_a() = KooPbr::KooMtl(diffuse: color({GREY}f, {GREY}f, {GREY}f));')
    assert shown(square(LOOKS[look])) == pytest.approx(HALF, abs=3e-3)


def test_display_colours_are_linear(square):
    primvars = f'color3f[] primvars:displayColor = [({GREY}, {GREY}, {GREY})]'
    assert shown(square('', primvars=primvars)) == pytest.approx(HALF, abs=1e-4)


def test_a_tint_counts_as_it_would_in_linear_light(square):
    """Half of the light of the image's grey: 0.2159 / 2 is 0.3628 in sRGB; the curve is no exact power."""
    assert shown(square(image(scale='0.5, 0.5, 0.5'))) == pytest.approx(0.3628, abs=0.01)


RAW = {
    'of the reader': image('token inputs:sourceColorSpace = "raw"'),
    'of the attribute': image(metadata='(colorSpace = "raw")'),
    'of MaterialX': image(metadata='(colorSpace = "lin_rec709")'),
    'of OmniPBR': mdl('OmniPBR.mdl', 'asset inputs:diffuse_texture = @grey.png@ (colorSpace = "raw")'),
    'of a UE4 template': mdl(
        'Num1.mdl', 'asset inputs:BaseColor_Tex = @grey.png@ (colorSpace = "raw")\nfloat inputs:IsBaseColorTex = 1'
    ),
    'of KooPbr': mdl('MI_a.mdl'),
}


@pytest.mark.parametrize('look', RAW)
def test_images_that_are_raw_are_linear(square, tmp_path, look):
    call = 'KooPbr_bitmap(filename: texture_2d("./grey.png", ::tex::gamma_linear)).tint'
    (tmp_path / 'MI_a.mdl').write_text(f'material MI_a() = KooPbr::KooMtl(diffuse: {call});')
    assert shown(square(RAW[look], pixel=55)) == pytest.approx(HALF)


def test_pictures_show_what_colours_and_images_say(square, render):
    """A grey in a material and the same in an image are the same in a picture: MuJoCo's renderer converts neither."""
    means = [render(square(look), (0, 0, 3), np.eye(3), 0.2).mean() for look in (preview(), image())]
    assert means[0] == pytest.approx(means[1], abs=1.0)
    assert means[0] > 50
