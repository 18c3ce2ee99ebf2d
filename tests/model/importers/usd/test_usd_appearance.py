"""Materials, textures, lights and cameras of USD files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image
from usd_stages import srgb

from internutopia.model.importers import usd
from internutopia.model.importers.load import content_key
from internutopia.model.layouts import camera_intrinsics
from internutopia.rendering.camera import half_angle

Gf, Sdf, UsdGeom, UsdLux, UsdPhysics, UsdShade = (
    pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'Sdf', 'UsdGeom', 'UsdLux', 'UsdPhysics', 'UsdShade')
)

SQUARE = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]
RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
VISUAL = 2
TYPES = Sdf.ValueTypeNames


def read(stage: Any) -> tuple[mujoco.MjModel, list[str]]:
    """What the importer makes of a stage, and its warnings."""
    stage.Save()
    spec, warnings = usd.load_with_warnings(Path(stage.GetRootLayer().realPath))
    return spec.compile(), warnings


def add_material(stage: Any, name: str, **inputs: Any) -> Any:
    """A UsdPreviewSurface; gives its shader."""
    material = UsdShade.Material.Define(stage, f'/Looks/{name}')
    shader = UsdShade.Shader.Define(stage, f'/Looks/{name}/shader')
    shader.CreateIdAttr('UsdPreviewSurface')
    for key, value in inputs.items():
        shader.CreateInput(key, TYPES.Float if np.isscalar(value) else TYPES.Color3f).Set(value)
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), 'surface')
    return shader


def add_mdl(stage: Any, name: str, **inputs: Any) -> None:
    """An OmniPBR material."""
    material = UsdShade.Material.Define(stage, f'/Looks/{name}')
    shader = UsdShade.Shader.Define(stage, f'/Looks/{name}/shader')
    shader.SetSourceAsset(Sdf.AssetPath('OmniPBR.mdl'), 'mdl')
    shader.SetSourceAssetSubIdentifier('OmniPBR', 'mdl')
    kinds = {str: TYPES.Asset, float: TYPES.Float, tuple: TYPES.Color3f}
    for key, value in inputs.items():
        shader.CreateInput(key, kinds[type(value)]).Set(value)
    material.CreateSurfaceOutput('mdl').ConnectToSource(shader.ConnectableAPI(), 'out')


def bind(prim: Any, name: str) -> None:
    material = UsdShade.Material.Get(prim.GetPrim().GetStage(), f'/Looks/{name}')
    UsdShade.MaterialBindingAPI.Apply(prim.GetPrim()).Bind(material)


def add_image(stage: Any, shader: Any, file: str, scale: Any = None) -> None:
    """Connects the colour of a surface to an image, laid out by the primvar `st`."""
    path = shader.GetPath().GetParentPath()
    reader = UsdShade.Shader.Define(stage, f'{path}/image')
    reader.CreateIdAttr('UsdUVTexture')
    reader.CreateInput('file', TYPES.Asset).Set(file)
    place = UsdShade.Shader.Define(stage, f'{path}/st')
    place.CreateIdAttr('UsdPrimvarReader_float2')
    place.CreateInput('varname', TYPES.String).Set('st')
    if scale is not None:
        layout = UsdShade.Shader.Define(stage, f'{path}/layout')
        layout.CreateIdAttr('UsdTransform2d')
        layout.CreateInput('scale', TYPES.Float2).Set(scale)
        layout.CreateInput('in', TYPES.Float2).ConnectToSource(place.ConnectableAPI(), 'result')
        place = layout
    reader.CreateInput('st', TYPES.Float2).ConnectToSource(place.ConnectableAPI(), 'result')
    shader.CreateInput('diffuseColor', TYPES.Color3f).ConnectToSource(reader.ConnectableAPI(), 'rgb')


def lay_out(mesh: Any, values: Any, interpolation: str = 'vertex') -> None:
    UsdGeom.PrimvarsAPI(mesh).CreatePrimvar('st', TYPES.TexCoord2fArray, interpolation).Set(values)


def write_quarters(folder: Path) -> None:
    """An image: red and green above blue and white."""
    Image.fromarray(np.array([[RED, GREEN], [BLUE, WHITE]], np.uint8)).resize((64, 64), 0).save(folder / 'quarters.png')


def texcoords(model: mujoco.MjModel, name: str) -> np.ndarray:
    """`(m, 3, 5)` x, y, z, u, v of the corners of a mesh geom's triangles, in the world."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mesh = model.mesh(int(model.geom(name).dataid[0]))
    faces = slice(int(mesh.faceadr[0]), int(mesh.faceadr[0] + mesh.facenum[0]))
    points = model.mesh_vert[int(mesh.vertadr[0]) + model.mesh_face[faces]]
    points = points @ data.geom(name).xmat.reshape(3, 3).T + data.geom(name).xpos
    return np.concatenate([points, model.mesh_texcoord[int(mesh.texcoordadr[0]) + model.mesh_facetexcoord[faces]]], -1)


def test_each_material_on_a_mesh_is_a_visual_mesh(stage, add_mesh, blocks):
    points, faces = blocks([0, 1], [0, 1], [0, 1], np.ones((1, 1, 1)))
    mesh = add_mesh('/cube', points, faces, approximation='convexHull')
    for name, color in (('one', (1, 0, 0)), ('two', (0, 1, 0)), ('rest', (0, 0, 1))):
        add_material(stage, name, diffuseColor=color)
    bind(mesh, 'rest')
    binding = UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim())
    for name, indices in (('one', [0, 1, 2]), ('two', [3, 4]), ('one_too', [5])):
        bind(binding.CreateMaterialBindSubset(name, indices), name.split('_')[0])
    model, _ = read(stage)
    expected = {'/cube/one': (4, (1, 0, 0)), '/cube/two': (2, (0, 1, 0)), '/cube': (6, (0, 0, 1))}
    for name, (count, color) in expected.items():
        geom = model.geom(name)
        assert model.mesh(int(geom.dataid[0])).facenum[0] == count
        np.testing.assert_allclose(geom.rgba[:3], color)
        assert geom.group[0] == VISUAL and not geom.contype[0]
    assert model.ngeom == 4 and model.geom('/cube/collider').contype[0]


def test_instances_look_like_what_they_are_instances_of_and_share_it(stage, add_mesh, blocks):
    mesh = add_mesh('/proto/cube', *blocks([0, 1], [0, 1], [0, 1], np.ones((1, 1, 1))), approximation='convexHull')
    material = UsdShade.Material.Define(stage, '/proto/paint')
    shader = UsdShade.Shader.Define(stage, '/proto/paint/shader')
    shader.CreateIdAttr('UsdPreviewSurface')
    shader.CreateInput('diffuseColor', TYPES.Color3f).Set((0, 1, 0))
    material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), 'surface')
    subset = UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).CreateMaterialBindSubset('top', [0, 1])
    UsdShade.MaterialBindingAPI.Apply(subset.GetPrim()).Bind(material)
    stage.OverridePrim('/proto').SetSpecifier(Sdf.SpecifierClass)
    for i in range(2):
        prim = UsdGeom.Xform.Define(stage, f'/World/cube_{i}').GetPrim()
        prim.GetReferences().AddInternalReference('/proto')
        prim.SetInstanceable(True)
    model, _ = read(stage)
    assert (model.ngeom, model.nmesh) == (6, 3)
    for i in range(2):
        np.testing.assert_allclose(model.geom(f'/World/cube_{i}/cube/top').rgba, [0, 1, 0, 1])


def test_a_texture_has_its_first_row_at_the_top(stage, add_mesh, tmp_path):
    write_quarters(tmp_path)
    add_image(stage, add_material(stage, 'quarters'), 'quarters.png')
    mesh = add_mesh('/square', SQUARE, [[0, 1, 2, 3]])
    bind(mesh, 'quarters')
    lay_out(mesh, [(0, 0), (1, 0), (1, 1), (0, 1)])
    model, warnings = read(stage)
    assert not warnings and model.ntex == 1
    pixels = model.tex_data.reshape(64, 64, 3)
    assert [tuple(pixels[y, x]) for y in (0, -1) for x in (0, -1)] == [RED, GREEN, BLUE, WHITE]
    corners = texcoords(model, '/square').reshape(-1, 5)
    # USD's v counts from the bottom, MuJoCo's from the first row
    np.testing.assert_allclose(
        corners[:, 3:], np.stack([(corners[:, 0] + 1) / 2, (1 - corners[:, 1]) / 2], 1), atol=1e-6
    )
    assert model.geom('/square').matid[0] >= 0


def test_a_texture_is_drawn_where_it_belongs(stage, add_mesh, tmp_path, render):
    write_quarters(tmp_path)
    add_image(stage, add_material(stage, 'quarters'), 'quarters.png')
    mesh = add_mesh('/square', SQUARE, [[0, 1, 2, 3]])
    bind(mesh, 'quarters')
    lay_out(mesh, [(0, 0), (1, 0), (1, 1), (0, 1)])
    camera = UsdGeom.Camera.Define(stage, '/above')
    UsdGeom.Xformable(camera).AddTranslateOp().Set(Gf.Vec3d(0, 0, 4))
    model, _ = read(stage)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    camera = data.camera('/above')
    half = half_angle(float(model.camera('/above').fovy[0]))
    picture = render(model, camera.xpos, camera.xmat.reshape(3, 3), half)
    strongest = [np.flatnonzero(picture[y, x] > 100).tolist() for y in (16, 32) for x in (16, 32)]
    assert strongest == [[0], [1], [2], [0, 1, 2]]


def test_texture_coordinates_at_corners_scaled(stage, add_mesh, tmp_path):
    write_quarters(tmp_path)
    add_image(stage, add_material(stage, 'quarters'), 'quarters.png', scale=(3, 2))
    mesh = add_mesh('/square', SQUARE, [[0, 1, 2], [0, 2, 3]])
    bind(mesh, 'quarters')
    st = [(0, 0), (1, 0), (1, 1), (0.5, 0), (1, 1), (0, 1)]  # another value at the same point
    lay_out(mesh, st, 'faceVarying')
    model, _ = read(stage)
    found = sorted(map(tuple, texcoords(model, '/square')[..., 3:].reshape(-1, 2).round(5).tolist()))
    assert found == sorted((round(3 * u, 5), round(1 - 2 * v, 5)) for u, v in st)


def test_what_has_no_coordinates_shows_the_mean_of_the_image(stage, tmp_path):
    write_quarters(tmp_path)
    add_image(stage, add_material(stage, 'quarters'), 'quarters.png')
    bind(UsdGeom.Cube.Define(stage, '/box'), 'quarters')
    model, _ = read(stage)
    np.testing.assert_allclose(model.geom('/box').rgba, [0.5, 0.5, 0.5, 1], atol=0.01)


def test_a_missing_or_broken_image_is_noted_and_replaced_by_a_colour(stage, add_mesh, tmp_path):
    (tmp_path / 'broken.png').write_bytes(b'not an image')
    for name in 'missing', 'broken':
        add_image(stage, add_material(stage, name), f'{name}.png')
        mesh = add_mesh(f'/{name}', SQUARE, [[0, 1, 2, 3]])
        mesh.CreateDisplayColorAttr([(0.1, 0.2, 0.3)])
        bind(mesh, name)
    model, warnings = read(stage)
    for name in 'missing', 'broken':
        np.testing.assert_allclose(model.geom(f'/{name}').rgba[:3], srgb(0.1, 0.2, 0.3), atol=1e-6)
    assert [sum(f'{name}.png' in warning for warning in warnings) for name in ('missing', 'broken')] == [1, 1]
    assert any('broken.png cannot be read (not an image of a known format)' in warning for warning in warnings)
    assert model.ntex == 0


def test_omniverse_materials(stage, add_mesh, tmp_path):
    write_quarters(tmp_path)
    add_mdl(stage, 'plain', diffuse_color_constant=(0.2, 0.4, 0.6), reflection_roughness_constant=0.0)
    add_mdl(stage, 'image', diffuse_texture='./quarters.png', diffuse_tint=(1.0, 0.5, 1.0))
    bind(UsdGeom.Sphere.Define(stage, '/ball'), 'plain')
    mesh = add_mesh('/square', SQUARE, [[0, 1, 2, 3]])
    bind(mesh, 'image')
    lay_out(mesh, [(0, 0), (1, 0), (1, 1), (0, 1)])
    model, warnings = read(stage)
    np.testing.assert_allclose(model.geom('/ball').rgba, [*srgb(0.2, 0.4, 0.6), 1], atol=1e-6)
    assert model.mat_shininess[int(model.geom('/ball').matid[0])] == pytest.approx(1)
    np.testing.assert_allclose(model.geom('/square').rgba, [1, *srgb(0.5), 1, 1], atol=1e-6)
    assert model.ntex == 1 and not warnings


def test_rough_surfaces_are_dull_and_smooth_metal_shines_and_reflects(stage):
    finishes = {'dull': (1.0, 0.0), 'glossy': (0.2, 0.0), 'metal': (0.0, 1.0)}
    for name, (roughness, metallic) in finishes.items():
        add_material(stage, name, roughness=roughness, metallic=metallic)
        bind(UsdGeom.Cube.Define(stage, f'/{name}'), name)
    model, _ = read(stage)
    dull, glossy, metal = (model.mat(f'/Looks/{name}') for name in finishes)
    assert dull.specular[0] == 0 < glossy.specular[0] < metal.specular[0]
    assert glossy.reflectance[0] == 0 < metal.reflectance[0]


def test_materials_of_one_name_that_look_alike_are_one(stage):
    """As each model of a home has its own prim of the same material."""
    colors = {'chair': (0.5, 0.25, 0.0), 'table': (0.0, 0.25, 0.5), 'shelf': (0.5, 0.25, 0.0)}
    for model, color in colors.items():
        add_material(stage, f'{model}/wood', roughness=0.3 if model == 'shelf' else 0.8, diffuseColor=color)
        bind(UsdGeom.Cube.Define(stage, f'/{model}'), f'{model}/wood')
    model, _ = read(stage)
    assert [model.mat(i).name for i in range(model.nmat)] == ['/Looks/chair/wood', '/Looks/shelf/wood']
    assert [int(model.geom(f'/{name}').matid[0]) for name in colors] == [0, 0, 1]
    for name, color in colors.items():
        np.testing.assert_allclose(model.geom(f'/{name}').rgba[:3], srgb(*color), atol=1e-6)


def test_normals_follow_the_scale_of_the_mesh(stage, add_mesh):
    """A ramp at 45 degrees, stretched to twice its length along x."""
    mesh = add_mesh('/ramp', [(0, 0, 0), (1, 0, 1), (1, 1, 1), (0, 1, 0)], [[0, 1, 2, 3]])
    mesh.CreateNormalsAttr([(-1, 0, 1)] * 4)
    mesh.SetNormalsInterpolation('faceVarying')
    UsdPhysics.CollisionAPI.Apply(UsdGeom.Sphere.Define(stage, '/ball').GetPrim())  # so that the ramp is just seen
    UsdGeom.Xformable(mesh).AddScaleOp().Set(Gf.Vec3f(2, 1, 1))
    model, _ = read(stage)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    mesh_id = int(model.geom('/ramp').dataid[0])
    start = model.mesh_normaladr[mesh_id]
    normals = model.mesh_normal[start : start + model.mesh_normalnum[mesh_id]]
    turned = normals @ data.geom('/ramp').xmat.reshape(3, 3).T
    np.testing.assert_allclose(turned, np.broadcast_to(np.array([-1, 0, 2]) / np.sqrt(5), turned.shape), atol=1e-5)


def test_a_camera_sits_on_its_body_and_sees_as_much_as_its_lens(stage):
    body = UsdGeom.Cube.Define(stage, '/car')
    UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())
    UsdGeom.Xformable(body).AddTranslateOp().Set(Gf.Vec3d(1, 0, 0))
    lens = UsdGeom.Camera.Define(stage, '/car/lens')
    UsdGeom.Xformable(lens).AddTranslateOp().Set(Gf.Vec3d(0, 2, 0))
    UsdGeom.Xformable(lens).AddRotateXYZOp().Set(Gf.Vec3f(90, 0, 0))
    lens.CreateFocalLengthAttr(10.0)
    lens.CreateVerticalApertureAttr(20.0)
    UsdGeom.Camera.Define(stage, '/map').CreateProjectionAttr('orthographic')
    UsdGeom.Camera.Get(stage, '/map').CreateVerticalApertureAttr(30.0)
    model, _ = read(stage)
    camera = model.cam('/car/lens')
    assert camera.fovy[0] == pytest.approx(90)
    assert model.body(int(camera.bodyid[0])).name == '/car'
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.cam('/car/lens').xpos, [1, 2, 0], atol=1e-6)
    np.testing.assert_allclose(
        data.cam('/car/lens').xmat.reshape(3, 3)[:, 2], [0, -1, 0], atol=1e-6
    )  # it looks along y
    assert model.cam('/map').fovy[0] == pytest.approx(3)  # metres: apertures are in tenths of the unit


@pytest.mark.parametrize('size', [(500, 300), (640, 480), (300, 300)])
def test_a_camera_shows_the_width_of_its_film_in_square_pixels(stage, size):
    camera = UsdGeom.Camera.Define(stage, '/eye')
    camera.CreateFocalLengthAttr(25.0)
    camera.CreateHorizontalApertureAttr(20.0)
    camera.CreateVerticalApertureAttr(12.0)
    camera.CreateHorizontalApertureOffsetAttr(2.0)
    camera.CreateVerticalApertureOffsetAttr(1.0)
    UsdGeom.Cube.Define(stage, '/box')
    found = camera_intrinsics(read(stage)[0], 0, size)
    window = camera.GetCamera().frustum.GetWindow()  # at distance 1, for pictures of the shape of the film
    low, high = np.array(window.GetMin()), np.array(window.GetMax())
    assert found.centre == pytest.approx((low + high) / 2, abs=1e-6)
    assert found.half_width == pytest.approx((high - low)[0] / 2)
    assert found.half_height == pytest.approx(found.half_width * size[1] / size[0])
    if size == (500, 300):
        assert found.half_height == pytest.approx((high - low)[1] / 2)


def test_however_many_lights_there_are_pictures_are_not_burnt_out(stage):
    for i in range(20):
        lamp = UsdLux.SphereLight.Define(stage, f'/lamp_{i}')
        lamp.CreateIntensityAttr(1e6 * (i + 1))
    for i in range(3):
        UsdLux.DistantLight.Define(stage, f'/sun_{i}').CreateIntensityAttr(5e4)
    UsdLux.DistantLight.Define(stage, '/off').CreateIntensityAttr(0)
    UsdLux.DistantLight.Define(stage, '/hidden').MakeInvisible()
    model, warnings = read(stage)
    names = [model.light(i).name for i in range(model.nlight)]
    assert {name for name in names if 'lamp' in name} == {f'/lamp_{i}' for i in range(17, 20)}  # eight in all
    assert [name for name in names if 'lamp' not in name] == ['/sun_0', '/sun_1', '/sun_2', '/glow']
    assert model.light_diffuse.sum(axis=0).max() < 2
    assert model.light('/lamp_19').diffuse[0] > model.light('/lamp_17').diffuse[0] > 0.05
    assert len(warnings) == 1 and '/lamp_16' in warnings[0]


def test_a_ceiling_lamp_shines_where_it_points(stage):
    lamp = UsdLux.RectLight.Define(stage, '/lamp')
    UsdGeom.Xformable(lamp).AddTranslateOp().Set(Gf.Vec3d(0, 0, 2))
    UsdGeom.Xformable(lamp).AddRotateXYZOp().Set(Gf.Vec3f(90, 0, 0))
    lamp.CreateColorAttr((1, 0.5, 0))
    model, _ = read(stage)
    light = model.light('/lamp')
    np.testing.assert_allclose(light.dir, [0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(light.pos, [0, 0, 2])
    np.testing.assert_allclose(light.diffuse / light.diffuse[0], srgb(1, 0.5, 0))


def test_another_image_is_another_asset(stage, add_mesh, tmp_path):
    write_quarters(tmp_path)
    add_image(stage, add_material(stage, 'quarters'), 'quarters.png')
    bind(add_mesh('/square', SQUARE, [[0, 1, 2, 3]]), 'quarters')
    stage.Save()
    before = content_key(tmp_path / 'stage.usda')
    Image.new('RGB', (8, 8)).save(tmp_path / 'quarters.png')
    assert content_key(tmp_path / 'stage.usda') != before
