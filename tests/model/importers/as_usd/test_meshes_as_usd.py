"""OBJ, STL and PLY files as scenes and objects: places, materials and colours against values by hand."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np
import pytest
from gltf_files import BOX, BOX_FACES

from internutopia.model.asset_paths import resolve
from internutopia.model.compose import compose
from internutopia.model.importers.load import content_key, load_spec
from internutopia.model.importers.usd import load_with_warnings
from internutopia.model.meshes.mesh_files import read_with_trimesh
from internutopia.model.spec import ObjectSpec, SceneSpec

pytest.importorskip('pxr')

OBJ = """mtllib room.mtl
v 0 0 0
v 1 0 0
v 1 1 0
v 0 1 0
v 0 0 1
v 1 0 1
vt 0 0
vt 1 0
vt 1 1
vt 0 1
o floor
usemtl wood
f 1/1 2/2 3/3 4/4
g wall
usemtl paint of a wall
f 1/1 5/4 6/3 2/2
"""
MTL = 'newmtl wood\nKd 1 1 1\nmap_Kd wood.png\nnewmtl paint of a wall\nKd 0.5 0.25 0.125\nd 0.5\n'


def stl(path: Path) -> Path:
    lines = ''.join(
        'facet normal 0 0 0\nouter loop\n' + ''.join(f'vertex {x} {y} {z}\n' for x, y, z in BOX[face] * (1, 2, 3)) +
        'endloop\nendfacet\n' for face in BOX_FACES
    )  # fmt: skip
    path.write_text(f'solid box\n{lines}endsolid\n')
    return path


def ply(path: Path, colours: bool = False) -> Path:
    head = ['ply', 'format ascii 1.0', f'element vertex {len(BOX)}', *(f'property float {axis}' for axis in 'xyz')]
    head += [f'property uchar {name}' for name in ('red', 'green', 'blue')] if colours else []
    head += [f'element face {len(BOX_FACES)}', 'property list uchar int vertex_indices', 'end_header']
    shades = [' 255 0 0' if point[2] else ' 0 0 255' for point in BOX] if colours else [''] * len(BOX)
    points = [f'{x} {y} {z}{shade}' for (x, y, z), shade in zip(BOX * (1, 2, 3), shades, strict=True)]
    faces = [f'3 {a} {b} {c}' for a, b, c in BOX_FACES]
    path.write_text('\n'.join([*head, *points, *faces]) + '\n')
    return path


@pytest.mark.parametrize('write', [stl, ply])
def test_a_mesh_file_keeps_its_axes_and_metres(tmp_path, corners, write):
    if write is ply:
        pytest.importorskip('trimesh')
    path = write(tmp_path / f'box.{write.__name__}')
    found = corners(load_spec(path).compile(), '/World/box')
    np.testing.assert_allclose([found.min(axis=0), found.max(axis=0)], [(0, 0, 0), (1, 2, 3)], atol=1e-5)


def test_an_obj_has_a_mesh_for_each_material(tmp_path):
    from PIL import Image

    path = tmp_path / 'room.obj'
    path.write_text(OBJ)
    assert 'materials are not found: wood of room.obj, paint of a wall of room.obj' in load_with_warnings(path)[1]
    (tmp_path / 'room.mtl').write_text(MTL)
    Image.new('RGB', (4, 4), (120, 80, 40)).save(tmp_path / 'wood.png')
    key = content_key(path)
    spec, warnings = load_with_warnings(path)
    model = spec.compile()
    assert warnings == []
    np.testing.assert_allclose(model.geom('/World/paint_of_a_wall').rgba, [0.5, 0.25, 0.125, 0.5], atol=1e-6)
    wood = model.geom('/World/wood')
    texture = model.texture(model.mat_texid[wood.matid[0], mujoco.mjtTextureRole.mjTEXROLE_RGB])
    np.testing.assert_array_equal(model.tex_data[texture.adr[0] :][:3], (120, 80, 40))
    np.testing.assert_allclose(wood.rgba, 1)
    Image.new('RGB', (4, 4), (1, 2, 3)).save(tmp_path / 'wood.png')
    assert content_key(path) != key


def test_colours_of_points_in_a_ply_are_shown(tmp_path):
    pytest.importorskip('trimesh')
    model = load_spec(ply(tmp_path / 'scan.ply', colours=True)).compile()
    texture = model.texture('palette')
    height, width = texture.height[0], texture.width[0]
    pixels = model.tex_data[texture.adr[0] :][: height * width * 3].reshape(height, width, 3)
    places = (model.mesh_texcoord[model.mesh_facetexcoord[:, 0]] * (width, height)).astype(int)
    shown = {tuple(pixels[v, u]) for u, v in places}
    assert (255, 0, 0) in shown and (0, 0, 255) in shown  # the top and the bottom; the sides are mixed


def test_colours_of_triangles_in_a_ply_are_shown(tmp_path):
    trimesh = pytest.importorskip('trimesh')
    box = trimesh.creation.box((1.0, 1.0, 1.0))
    box.visual.face_colors = [(0, 255, 0, 255)] * 6 + [(255, 0, 0, 255)] * 6
    box.export(tmp_path / 'box.ply')
    model = load_spec(tmp_path / 'box.ply').compile()
    pixels = model.tex_data.reshape(-1, 3)
    assert {(0, 255, 0), (255, 0, 0)} <= {tuple(pixel) for pixel in pixels.tolist()}
    assert model.mesh_facenum.max() == 12


SQUARES = [(0, 3, 2, 1), (4, 5, 6, 7)]  # below red, above green
RED_AND_GREEN = [(255, 0, 0), (0, 255, 0)]


def ply_of_polygons(path: Path, binary: bool, faces: Sequence[tuple[int, ...]], colours: bool = True) -> Path:
    points = [(x, y, z) for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))]
    head = ['ply', f'format {"binary_little_endian" if binary else "ascii"} 1.0', f'element vertex {len(points)}']
    head += [*(f'property float {axis}' for axis in 'xyz'), f'element face {len(faces)}']
    head += ['property list uchar int vertex_indices']
    head += [f'property uchar {name}' for name in ('red', 'green', 'blue')] * colours
    rows = [(len(face), face, (RED_AND_GREEN * len(faces))[k] if colours else ()) for k, face in enumerate(faces)]
    if binary:
        data = b''.join(struct.pack('<3f', *point) for point in points)
        data += b''.join(struct.pack(f'<B{n}i{len(shade)}B', n, *face, *shade) for n, face, shade in rows)
    else:
        lines = [*points, *((n, *face, *shade) for n, face, shade in rows)]
        data = ''.join(f'{" ".join(map(str, line))}\n' for line in lines).encode()
    path.write_bytes('\n'.join([*head, 'end_header', '']).encode() + data)
    return path


@pytest.mark.parametrize('binary', [False, True])
def test_colours_of_quads_in_a_ply_are_those_of_both_triangles(tmp_path, binary):
    pytest.importorskip('trimesh')
    mesh = read_with_trimesh(ply_of_polygons(tmp_path / 'box.ply', binary, SQUARES))
    heights = mesh.vertices[mesh.faces][:, :, 2].mean(axis=1)
    shown = {(height, *color) for height, color in zip(heights, mesh.visual.face_colors[:, :3].tolist(), strict=True)}
    assert len(mesh.faces) == 4 and mesh.area == pytest.approx(2.0) and shown == {(0, 255, 0, 0), (1, 0, 255, 0)}
    model = load_spec(tmp_path / 'box.ply').compile()
    assert {(0, 255, 0), (255, 0, 0)} <= {tuple(pixel) for pixel in model.tex_data.reshape(-1, 3).tolist()}


@pytest.mark.parametrize(
    ('binary', 'colours', 'cause'),
    [
        (False, True, 'it has colours of faces with different numbers of corners; all must be triangles or quads'),
        (True, False, 'it is cut off, or binary with faces of different numbers of corners'),
    ],
)
def test_polygons_of_a_ply_that_cannot_be_read_are_an_error_with_the_cause(tmp_path, binary, colours, cause):
    pytest.importorskip('trimesh')
    path = ply_of_polygons(tmp_path / 'mixed.ply', binary, [(0, 2, 1), (0, 3, 2), (4, 5, 6, 7)], colours)
    with pytest.raises(ValueError, match=f'mixed.ply: {cause}'):
        load_spec(path)


def test_a_ply_that_is_cut_off_is_an_error(tmp_path):
    pytest.importorskip('trimesh')
    path = ply(tmp_path / 'cut.ply')
    path.write_text('\n'.join(path.read_text().splitlines()[:-3]))
    with pytest.raises(ValueError, match='its header announces 12 faces, and 9 triangles can be read'):
        load_spec(path)


def test_a_mesh_file_is_an_object_that_falls(tmp_path):
    box = ObjectSpec('box', asset=str(stl(tmp_path / 'box.stl')), scale=(0.1, 0.1, 0.1), position=(0, 0, 1), mass=2.0)
    model = compose(SceneSpec(asset='scenes/empty.xml', objects=(box,)), 0.002).compile()
    assert model.body('objects/box').mass == pytest.approx(2.0)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 500)
    assert data.body('objects/box').xpos[2] == pytest.approx(0.0, abs=0.01)  # its origin is a corner of it


@pytest.mark.parametrize(
    ('name', 'advice'),
    [
        ('chair.fbx', 'Blender imports it and exports glTF'),
        ('part.STEP', 'FreeCAD imports it and exports glTF'),
        ('robot.xacro', 'expand it first'),
        ('scene.json', 'is not one of'),
    ],
)
def test_a_form_that_is_not_read_names_its_converter(tmp_path, name, advice):
    (tmp_path / name).write_text('')
    with pytest.raises(ValueError, match=advice):
        resolve(tmp_path / name)
