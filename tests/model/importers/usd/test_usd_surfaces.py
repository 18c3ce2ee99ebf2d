"""Opacity, wrapping and other ways of laying out images, colours that vary, normals, odd meshes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image
from usd_stages import srgb

from internutopia.model.importers import usd

Gf, Sdf, UsdGeom, UsdPhysics, UsdShade, UsdUtils, Vt = (
    pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'Sdf', 'UsdGeom', 'UsdPhysics', 'UsdShade', 'UsdUtils', 'Vt')
)

TYPES = Sdf.ValueTypeNames
SQUARE = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)]
UNIT = [(0, 0), (1, 0), (1, 1), (0, 1)]
RED, BLUE = (255, 0, 0), (0, 0, 255)
HALVES = np.repeat(np.array([[[*RED, 255], [*BLUE, 51]]], np.uint8), 2, axis=0)
"""Pixels: red and opaque on the left, blue and 20 % opaque on the right."""


def read(stage: Any) -> tuple[mujoco.MjModel, list[str]]:
    stage.Save()
    spec, warnings = usd.load_with_warnings(Path(stage.GetRootLayer().realPath))
    return spec.compile(), warnings


def add_square(stage: Any, folder: Path, coordinates: Any = UNIT, **reader: Any) -> Any:
    """A square that shows `HALVES`; gives its surface shader. `reader`: inputs of the `UsdUVTexture`."""
    Image.fromarray(HALVES).resize((8, 8), 0).save(folder / 'halves.png')
    mesh = UsdGeom.Mesh.Define(stage, '/square')
    mesh.CreatePointsAttr(SQUARE)
    mesh.CreateFaceVertexCountsAttr([4])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    UsdGeom.PrimvarsAPI(mesh).CreatePrimvar('st', TYPES.TexCoord2fArray, 'vertex').Set(coordinates)
    material = UsdShade.Material.Define(stage, '/look')
    surface, image, place = (UsdShade.Shader.Define(stage, f'/look/{name}') for name in ('surface', 'image', 'st'))
    for shader, kind in (
        (surface, 'UsdPreviewSurface'),
        (image, 'UsdUVTexture'),
        (place, 'UsdPrimvarReader_float2'),
    ):
        shader.CreateIdAttr(kind)
    place.CreateInput('varname', TYPES.String).Set('st')
    image.CreateInput('file', TYPES.Asset).Set('halves.png')
    image.CreateInput('st', TYPES.Float2).ConnectToSource(place.ConnectableAPI(), 'result')
    for name, value in reader.items():
        image.CreateInput(name, TYPES.Token).Set(value)
    surface.CreateInput('diffuseColor', TYPES.Color3f).ConnectToSource(image.ConnectableAPI(), 'rgb')
    material.CreateSurfaceOutput().ConnectToSource(surface.ConnectableAPI(), 'surface')
    UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
    UsdPhysics.CollisionAPI.Apply(UsdGeom.Cube.Define(stage, '/floor').GetPrim())  # so that the square is just seen
    return surface


def connect(surface: Any, name: str, output: str) -> None:
    image = UsdShade.Shader.Get(surface.GetPrim().GetStage(), '/look/image')
    surface.CreateInput(name, TYPES.Float).ConnectToSource(image.ConnectableAPI(), output)


def pixels(model: mujoco.MjModel) -> np.ndarray:
    """`(height, width, channels)` of the only texture."""
    (texture,) = range(model.ntex)
    return model.tex_data.reshape(model.tex_height[texture], model.tex_width[texture], model.tex_nchannel[texture])


def colour_at(model: mujoco.MjModel, u: float, v: float) -> tuple[int, ...]:
    """What the square shows at texture coordinates as in the file: interpolated between its corners, then repeated."""
    mesh = model.mesh(int(model.geom('/square').dataid[0]))
    faces = slice(int(mesh.faceadr[0]), int(mesh.faceadr[0] + mesh.facenum[0]))
    corners = model.mesh_vert[int(mesh.vertadr[0]) + model.mesh_face[faces]].reshape(-1, 3)
    coordinates = model.mesh_texcoord[int(mesh.texcoordadr[0]) + model.mesh_facetexcoord[faces]].reshape(-1, 2)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    corners = corners @ data.geom('/square').xmat.reshape(3, 3).T + data.geom('/square').xpos
    affine, *_ = np.linalg.lstsq(np.column_stack([corners[:, :2], np.ones(len(corners))]), coordinates)
    image = pixels(model)
    where = np.array([u, v, 1.0]) @ affine
    column, row = (where % 1 * [image.shape[1], image.shape[0]]).astype(int)
    return tuple(image[row, column].tolist())


@pytest.mark.parametrize(
    ('wrap', 'expected'),
    [
        ('repeat', [BLUE, RED, BLUE, RED]),
        ('clamp', [RED, RED, BLUE, BLUE]),
        ('mirror', [RED, RED, BLUE, BLUE]),
        ('black', [(0, 0, 0), RED, BLUE, (0, 0, 0)]),
    ],
)
def test_what_is_beyond_an_image(stage, tmp_path, wrap, expected):
    add_square(stage, tmp_path, [(-1, -1), (2, -1), (2, 2), (-1, 2)], wrapS=wrap, wrapT=wrap)
    model, warnings = read(stage)
    # the square is 2 m wide and shows u = -1 .. 2: these points are at u = -0.25, 0.25, 0.75 and 1.25
    across = [(u - 0.5) * 2 / 3 for u in (-0.25, 0.25, 0.75, 1.25)]
    assert [colour_at(model, x, 0.0) for x in across] == expected and not warnings


def test_a_mirrored_image_goes_on_forever(stage, tmp_path):
    add_square(stage, tmp_path, [(0, 0), (20, 0), (20, 1), (0, 1)], wrapS='mirror')
    model, _ = read(stage)
    across = [u / 10 - 1 for u in (10.25, 10.75, 11.25, 11.75)]
    assert [colour_at(model, x, 0.0) for x in across] == [RED, BLUE, BLUE, RED]
    assert pixels(model).shape == (8, 16, 3)


def test_an_image_that_is_not_left_stays_as_it_is(stage, tmp_path):
    add_square(stage, tmp_path, wrapS='clamp', wrapT='black')
    assert pixels(read(stage)[0]).shape == (8, 8, 3)


def test_opacity_from_an_image(stage, tmp_path):
    connect(add_square(stage, tmp_path), 'opacity', 'a')
    model, warnings = read(stage)
    assert [tuple(pixels(model)[0, x].tolist()) for x in (0, -1)] == [(*RED, 255), (*BLUE, 51)]
    assert 0.9 < model.geom('/square').rgba[3] < 1  # else MuJoCo does not blend
    assert not warnings


def test_a_threshold_cuts_out_what_is_less_opaque(stage, tmp_path):
    surface = add_square(stage, tmp_path)
    connect(surface, 'opacity', 'a')
    surface.CreateInput('opacityThreshold', TYPES.Float).Set(0.5)
    model, _ = read(stage)
    assert sorted(np.unique(pixels(model)[..., 3])) == [0, 255]
    surface.GetInput('opacityThreshold').Set(0.1)
    model, _ = read(stage)
    assert pixels(model).shape[2] == 3 and model.geom('/square').rgba[3] == 1  # nothing is below that


def test_opacity_of_what_has_no_coordinates_is_averaged(stage, tmp_path):
    connect(add_square(stage, tmp_path), 'opacity', 'a')
    UsdShade.MaterialBindingAPI.Apply(UsdGeom.Cube.Define(stage, '/box').GetPrim()).Bind(
        UsdShade.Material.Get(stage, '/look')
    )
    model, _ = read(stage)
    np.testing.assert_allclose(model.geom('/box').rgba, [0.5, 0, 0.5, 0.6], atol=1e-6)


def test_cut_out_parts_are_seen_through(stage, tmp_path, render):
    surface = add_square(stage, tmp_path)
    connect(surface, 'opacity', 'a')
    surface.CreateInput('opacityThreshold', TYPES.Float).Set(0.5)
    below = UsdGeom.Cube.Define(stage, '/below')
    below.CreateDisplayColorAttr([(0, 1, 0)])
    UsdGeom.Xformable(below).AddTranslateOp().Set((0, 0, -3))
    stage.RemovePrim('/floor')
    model, _ = read(stage)
    picture = render(model, (0, 0, 4), np.eye(3))
    left, right = picture[24, 18].astype(int), picture[24, 30].astype(int)
    assert left.argmax() == 0 and left[0] > 2 * left[1]
    assert right.argmax() == 1 and right[1] > 2 * right[2]


def test_images_within_a_package(stage, tmp_path):
    add_square(stage, tmp_path)
    stage.Save()
    package = tmp_path / 'packed.usdz'
    assert UsdUtils.CreateNewUsdzPackage(str(tmp_path / 'stage.usda'), str(package))
    (tmp_path / 'halves.png').unlink()
    spec, warnings = usd.load_with_warnings(package)
    assert tuple(pixels(spec.compile())[0, 0].tolist()) == RED and not warnings


def test_images_that_are_no_colour_are_told(stage, tmp_path):
    surface = add_square(stage, tmp_path)
    connect(surface, 'roughness', 'r')
    connect(surface, 'normal', 'rgb')
    assert read(stage)[1] == ['image for normal, roughness is not shown: /look']


def test_a_material_of_materialx(stage):
    material = UsdShade.Material.Define(stage, '/look')
    shader = UsdShade.Shader.Define(stage, '/look/standard')
    shader.CreateIdAttr('ND_standard_surface_surfaceshader')
    shader.CreateInput('base_color', TYPES.Color3f).Set((0.2, 0.4, 0.6))
    shader.CreateInput('opacity', TYPES.Color3f).Set((0.5, 0.5, 0.5))
    material.CreateSurfaceOutput('mtlx').ConnectToSource(shader.ConnectableAPI(), 'out')
    UsdShade.MaterialBindingAPI.Apply(UsdGeom.Sphere.Define(stage, '/ball').GetPrim()).Bind(material)
    np.testing.assert_allclose(read(stage)[0].geom('/ball').rgba, [*srgb(0.2, 0.4, 0.6), 0.5], atol=1e-6)


def test_a_colour_that_varies_is_that_of_each_triangle(stage, add_mesh):
    mesh = add_mesh('/square', SQUARE, [[0, 1, 2, 3]])
    UsdGeom.PrimvarsAPI(mesh).CreatePrimvar('displayColor', TYPES.Color3fArray, 'vertex').Set(
        [(1, 0, 0), (1, 0, 0), (0, 0, 1), (0, 0, 1)]
    )
    model, warnings = read(stage)
    assert warnings == []
    texture = model.texture('palette')
    height, width = texture.height[0], texture.width[0]
    pixels = model.tex_data[texture.adr[0] :][: height * width * 3].reshape(height, width, 3)
    places = model.mesh_texcoord[model.mesh_facetexcoord[:, 0]] * (width, height)
    shown = pixels[places[:, 1].astype(int), places[:, 0].astype(int)] / 255
    mixed = [srgb(1 / 3, 0, 2 / 3), srgb(2 / 3, 0, 1 / 3)]  # of the corners of both triangles
    np.testing.assert_allclose(np.unique(shown, axis=0), mixed, atol=0.5 / 31 + 1 / 255)  # the palette has 32 steps


def test_a_colour_that_varies_over_what_is_no_mesh_is_averaged_and_told(stage):
    cube = UsdGeom.Cube.Define(stage, '/box')
    UsdGeom.PrimvarsAPI(cube).CreatePrimvar('displayColor', TYPES.Color3fArray, 'vertex').Set([(1, 0, 0), (0, 0, 1)])
    model, warnings = read(stage)
    np.testing.assert_allclose(model.geom('/box').rgba, srgb(0.5, 0, 0.5, 1))
    assert warnings == ['displayColor that varies over the surface is averaged: /box']


@pytest.mark.parametrize(('count', 'indices'), [(3, None), (4, [0, 1, 2, 9])])
def test_primvars_that_do_not_fit_cost_themselves(stage, add_mesh, count, indices):
    mesh = add_mesh('/square', SQUARE, [[0, 1, 2, 3]])
    normals = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar('normals', TYPES.Normal3fArray, 'vertex')
    normals.Set([(0, 0, 1)] * count)
    if indices is not None:
        normals.SetIndices(Vt.IntArray(indices))
    model, warnings = read(stage)
    assert model.ngeom == 2 and len(warnings) == 1 and warnings[0].startswith('primvar normals ')


def test_each_corner_has_its_own_normal(stage, add_mesh, blocks):
    """A cube whose faces share points, and whose normals are those of its faces."""
    points, faces = blocks([0, 1], [0, 1], [0, 1], np.ones((1, 1, 1)))
    mesh = add_mesh('/cube', points, faces)
    flat = np.cross(*np.moveaxis(points[faces][:, 1:] - points[faces][:, :1], 1, 0))
    mesh.CreateNormalsAttr(np.repeat(flat, 3, axis=0).tolist())
    mesh.SetNormalsInterpolation('faceVarying')
    UsdPhysics.CollisionAPI.Apply(UsdGeom.Sphere.Define(stage, '/ball').GetPrim())
    model, _ = read(stage)
    corners = model.mesh_vert[model.mesh_face]
    sides = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    shown = model.mesh_normal[model.mesh_facenormal]
    np.testing.assert_allclose(shown, np.broadcast_to(sides[:, None], shown.shape), atol=1e-5)


def test_holes_of_a_mesh_are_open(stage, add_mesh, blocks):
    quads = [[0, 1, 2, 3], [4, 5, 6, 7]]
    mesh = add_mesh('/plates', SQUARE + [(x, y, 1) for x, y, _ in SQUARE], quads)
    mesh.CreateHoleIndicesAttr([1])
    UsdPhysics.CollisionAPI.Apply(UsdGeom.Sphere.Define(stage, '/ball').GetPrim())
    model, _ = read(stage)
    assert model.geom('/plates').rbound[0] < 1.5  # the lower plate alone


@pytest.mark.parametrize('kind', ['Point3dArray', 'Point3hArray', 'Double3Array', 'Float3Array'])
def test_points_of_any_precision(stage, kind):
    mesh = UsdGeom.Mesh.Define(stage, '/mesh')
    arrays = {'d': Vt.Vec3dArray, 'h': Vt.Vec3hArray, 'D': Vt.Vec3dArray, 'F': Vt.Vec3fArray}
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    mesh.GetPrim().CreateAttribute('points', getattr(TYPES, kind)).Set(
        arrays[kind[6] if kind[0] == 'P' else kind[0]](corners)
    )
    mesh.CreateFaceVertexCountsAttr([3] * 4)
    mesh.CreateFaceVertexIndicesAttr([0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3])
    model, _ = read(stage)
    assert model.geom('/mesh').type[0] == mujoco.mjtGeom.mjGEOM_MESH


def test_a_mesh_without_a_surface_is_told(stage, add_mesh):
    UsdGeom.Cube.Define(stage, '/cube')
    UsdGeom.Mesh.Define(stage, '/empty')
    add_mesh('/line', [(0, 0, 0), (1, 0, 0), (2, 0, 0)], [[0, 1, 2]])
    model, warnings = read(stage)
    assert model.ngeom == 1 and warnings == ['left out, it has no surface: /empty, /line']


@pytest.mark.parametrize(('scheme', 'told'), [('catmullClark', True), ('loop', True), ('none', False), (None, False)])
def test_subdivision_is_told_where_the_file_asks_for_it(stage, add_mesh, scheme, told):
    mesh = add_mesh('/square', SQUARE, [[0, 1, 2, 3]])
    if scheme is not None:
        mesh.CreateSubdivisionSchemeAttr(scheme)
    expected = [f'subdivision {scheme} is not applied: /square']
    assert read(stage)[1] == (expected if told else [])
