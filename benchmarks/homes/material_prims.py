"""Material prims: shaders of MDL modules with their inputs, or UsdPreviewSurface of the same appearance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.homes.materials import TEMPLATES, Appearance, Rgb
from benchmarks.homes.prims import add_prim, connect, set_attribute


def add_material(scope: Any, appearance: Appearance, assets: str, *, preview: bool) -> None:
    """Add a material with its shader: of its own kind, or as UsdPreviewSurface.

    Args:
        scope: spec of the prim that it goes below.
        appearance: its appearance.
        assets: the folder of the materials as the file calls it.
        preview: write UsdPreviewSurface, whatever the kind.
    """
    from pxr import Sdf

    material = add_prim(scope, appearance.name, 'Material')
    if preview or appearance.kind == 'UsdPreviewSurface':
        _add_preview_surface(material, appearance, assets)
        return
    shader = add_prim(material, 'Shader', 'Shader')
    set_attribute(shader, 'info:implementationSource', 'Token', 'sourceAsset', uniform=True)
    file, name = _mdl_module(appearance)
    builtin = appearance.kind in ('OmniPBR', 'OmniGlass')
    set_attribute(
        shader, 'info:mdl:sourceAsset', 'Asset', Sdf.AssetPath(file if builtin else f'{assets}/{file}'), uniform=True
    )
    set_attribute(shader, 'info:mdl:sourceAsset:subIdentifier', 'Token', name, uniform=True)
    for key, (kind, value) in _mdl_inputs(appearance, assets).items():
        set_attribute(shader, f'inputs:{key}', kind, value)
    set_attribute(shader, 'outputs:out', 'Token')
    connect(set_attribute(material, 'outputs:mdl:surface', 'Token'), shader, 'outputs:out')


def _mdl_module(appearance: Appearance) -> tuple[str, str]:
    """File and name of the material in it."""
    name = appearance.name if appearance.kind == 'KooMtl' else appearance.kind
    if appearance.kind == 'Num':
        name = TEMPLATES[int(appearance.name[-2:], 16) % len(TEMPLATES)]
    return f'{name}.mdl', name


def _mdl_inputs(appearance: Appearance, assets: str) -> Mapping[str, tuple[str, Any]]:
    """Inputs of the shader of a material by name, with their types: none where all is in the text of the `.mdl`."""
    from pxr import Gf, Sdf

    color, glows = ('Color3f', _vec(appearance.color)), any(appearance.emission)
    image, tiling = None, Gf.Vec2f(1.0)
    if appearance.texture is not None:
        image, tiling = Sdf.AssetPath(f'{assets}/{appearance.texture.file}'), Gf.Vec2f(*appearance.texture.tiling)
    textured = image is not None
    if appearance.kind == 'OmniGlass':
        return {'glass_color': color, 'frosting_roughness': ('Float', appearance.roughness)}
    inputs: dict[str, tuple[str, Any]] = {}
    if appearance.kind == 'OmniPBR':
        if textured:
            inputs |= {'diffuse_texture': ('Asset', image), 'texture_scale': ('Float2', tiling), 'diffuse_tint': color}
        else:
            inputs['diffuse_color_constant'] = color
        inputs['reflection_roughness_constant'] = ('Float', appearance.roughness)
        inputs['metallic_constant'] = ('Float', appearance.metalness)
        if glows:
            inputs |= {'enable_emission': ('Bool', True), 'emissive_color': ('Color3f', _vec(appearance.emission))}
            inputs['emissive_intensity'] = ('Float', 1.0)
    elif appearance.kind == 'Num':
        inputs |= {'BaseColor_Color': color, 'IsBaseColorTex': ('Float', float(textured))}
        if textured:
            inputs |= {'BaseColor_Tex': ('Asset', image), 'BaseColor_Tiling': ('Float2', tiling)}
        grey = {'Gloss_Color': 1 - appearance.roughness, 'Metallic_Color': appearance.metalness, 'Specular_Color': 0.5}
        inputs |= {name: ('Color3f', Gf.Vec3f(value)) for name, value in grey.items()}
        inputs |= {name: ('Float', 0.0) for name in ('IsGlossTex', 'IsMetallicTex', 'IsNormalTex')}
        inputs |= {'Opacity': ('Float', appearance.opacity), 'Emissive_Color': ('Color3f', _vec(appearance.emission))}
        inputs['EmissiveIntensity'] = ('Float', float(glows))
    return inputs


def _add_preview_surface(material: Any, appearance: Appearance, assets: str) -> None:
    from pxr import Gf, Sdf

    surface = add_prim(material, 'Surface', 'Shader')
    set_attribute(surface, 'info:id', 'Token', 'UsdPreviewSurface', uniform=True)
    for name, value in [
        ('roughness', appearance.roughness),
        ('metallic', appearance.metalness),
        ('opacity', appearance.opacity),
    ]:
        set_attribute(surface, f'inputs:{name}', 'Float', value)
    set_attribute(surface, 'inputs:emissiveColor', 'Color3f', _vec(appearance.emission))
    diffuse = set_attribute(surface, 'inputs:diffuseColor', 'Color3f', _vec(appearance.color))
    set_attribute(surface, 'outputs:surface', 'Token')
    connect(set_attribute(material, 'outputs:surface', 'Token'), surface, 'outputs:surface')
    if appearance.texture is None:
        return
    nodes = {name: add_prim(material, name, 'Shader') for name in ('Reader', 'Transform', 'Texture')}
    ids = {'Reader': 'UsdPrimvarReader_float2', 'Transform': 'UsdTransform2d', 'Texture': 'UsdUVTexture'}
    for name, node in nodes.items():
        set_attribute(node, 'info:id', 'Token', ids[name], uniform=True)
    set_attribute(nodes['Reader'], 'inputs:varname', 'String', 'st')
    set_attribute(nodes['Reader'], 'outputs:result', 'Float2')
    connect(set_attribute(nodes['Transform'], 'inputs:in', 'Float2'), nodes['Reader'], 'outputs:result')
    set_attribute(nodes['Transform'], 'inputs:scale', 'Float2', Gf.Vec2f(*appearance.texture.tiling))
    set_attribute(nodes['Transform'], 'inputs:rotation', 'Float', appearance.texture.rotation)
    set_attribute(nodes['Transform'], 'inputs:translation', 'Float2', Gf.Vec2f(*appearance.texture.offset))
    set_attribute(nodes['Transform'], 'outputs:result', 'Float2')
    image = nodes['Texture']
    set_attribute(image, 'inputs:file', 'Asset', Sdf.AssetPath(f'{assets}/{appearance.texture.file}'))
    set_attribute(image, 'inputs:sourceColorSpace', 'Token', 'sRGB')
    for axis in 'ST':
        set_attribute(image, f'inputs:wrap{axis}', 'Token', 'repeat')
    set_attribute(image, 'inputs:scale', 'Float4', Gf.Vec4f(*appearance.color, 1.0))
    connect(set_attribute(image, 'inputs:st', 'Float2'), nodes['Transform'], 'outputs:result')
    set_attribute(image, 'outputs:rgb', 'Float3')
    connect(diffuse, image, 'outputs:rgb')


def _vec(color: Rgb) -> Any:
    from pxr import Gf

    return Gf.Vec3f(*color)
