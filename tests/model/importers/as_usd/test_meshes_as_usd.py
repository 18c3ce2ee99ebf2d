"""OBJ, STL and PLY files as scenes and objects: places, materials and colours against values by hand."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from gltf_files import BOX, BOX_FACES

from internutopia.model.asset_paths import resolve
from internutopia.model.compose import compose
from internutopia.model.importers.load import content_key, load_spec
from internutopia.model.importers.usd import load_with_warnings
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
