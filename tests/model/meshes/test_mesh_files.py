"""Formats of mesh files, through URDF files that show them."""

from __future__ import annotations

import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest
from urdf_text import OBJ, attached, link, mesh, shape, warnings, write

from internutopia.model.meshes.collada import read_collada

# A tetrahedron with edges of 1, 2, 3 m along the axes, its volume is 1 m3
POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
PER_CUBIC_METRE = 1000.0  # kg


def ascii_stl() -> bytes:
    facets = (
        'facet normal 0 0 0\n outer loop\n'
        + ''.join(f'  vertex {x} {y:e} {z}\n' for x, y, z in POINTS[face])
        + ' endloop\nendfacet\n'
        for face in FACES
    )
    return f'solid part\n{"".join(facets)}endsolid part\n'.encode()


def binary_stl(header: bytes = b'') -> bytes:
    faces = b''.join(np.append(np.zeros(3), POINTS[face]).astype(np.float32).tobytes() + b'\0\0' for face in FACES)
    return header.ljust(80, b'\0') + np.uint32(len(FACES)).tobytes() + faces


def model_of(folder: Path, name: str, data: bytes | str, role: str = 'collision') -> mujoco.MjModel:
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())
    return attached(write(folder, link('base', mesh(role, name), mass=0)))


def volume(model: mujoco.MjModel) -> float:
    return float(model.body('r/base').mass[0]) / PER_CUBIC_METRE


@pytest.mark.parametrize(
    ('name', 'data'),
    [
        ('part.stl', binary_stl()),
        ('PART.STL', binary_stl()),
        ('part.stl', binary_stl(b'solid of a program that calls it so')),
        ('longer.stl', binary_stl() + b'made by a program'),
        ('text.stl', ascii_stl()),
        ('TEXT.Stl', ascii_stl().replace(b'\n', b'\r\n').replace(b'vertex', b'VERTEX')),
    ],
)
def test_stl_of_both_kinds(tmp_path, name, data):
    model = model_of(tmp_path, name, data)
    assert volume(model) == pytest.approx(1.0)
    assert (model.nmeshvert, model.nmeshface) == (4, 4)


@pytest.mark.parametrize(
    'data',
    [
        b'',
        b'solid nothing\nendsolid\n',
        binary_stl()[:100],
        ascii_stl().split(b' endloop')[0].rsplit(b'vertex', 1)[0],
        b'\0' * 84,
    ],
)
def test_an_stl_without_triangles_is_left_out(tmp_path, caplog, data):
    assert model_of(tmp_path, 'part.stl', data).ngeom == 0
    assert any('left out meshes: ' in message and 'part.stl (it ' in message for message in warnings(caplog))


GROUPS = """o first
v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 0\nvt 1 0\nvt 0 1
g first
f 1/1 3/3 2/2\nf 1/1 2/2 4/3\nf 2/1 3/2 4/3\nf 1/1 4/2 3/3
o second
v 5 0 0\nv 6 0 0\nv 6 1 0\nv 5 1 0
f -4/1/ -3/2/ -2/3/ -1/1/
"""


def test_all_groups_of_an_obj_are_read(tmp_path):
    """MuJoCo by itself would take the faces of the first group."""
    model = model_of(tmp_path, 'part.obj', GROUPS, 'visual')
    assert (model.nmeshface, model.nmeshvert) == (4 + 2, 8)
    one = model_of(tmp_path, 'one.obj', GROUPS[: GROUPS.index('o second')].replace('g first', ''), 'visual')
    # images lie as in a file that MuJoCo reads
    for face in range(4):
        ours, theirs = (m.mesh_texcoord[m.mesh_facetexcoord[face]] for m in (model, one))
        np.testing.assert_array_equal(ours, theirs)
    bare = model_of(tmp_path, 'bare.obj', GROUPS.replace('-1/1/', '-1'), 'visual')
    assert (bare.nmeshface, bare.nmeshtexcoord) == (6, 0)


def test_an_obj_whose_faces_name_nothing_is_left_out(tmp_path, caplog):
    assert model_of(tmp_path, 'part.obj', GROUPS.replace('f -4', 'f 9')).ngeom == 0
    assert any('part.obj (a face names a vertex that is not there)' in message for message in warnings(caplog))


DAE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit name="{unit}" meter="{metre}"/><up_axis>Y_UP</up_axis></asset>
<library_effects>
<effect id="e0"><profile_COMMON><technique><phong><diffuse><color>1 0.5 0 1</color></diffuse></phong></technique>
</profile_COMMON></effect>
<effect id="e1"><profile_COMMON><technique><lambert><diffuse><color>0 0 1 1</color></diffuse></lambert></technique>
</profile_COMMON></effect></library_effects>
<library_materials><material id="m0"><instance_effect url="#e0"/></material>
<material id="m1"><instance_effect url="#e1"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="a" count="12">0 0 0 1 0 0 0 2 0 0 0 3</float_array>
<technique_common><accessor source="#a" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>{faces}</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="n">{transform}<instance_geometry url="#g">
<bind_material><technique_common><instance_material symbol="x" target="#m0"/>
<instance_material symbol="y" target="#m1"/></technique_common></bind_material></instance_geometry></node>
</visual_scene></library_visual_scenes>{scene}</COLLADA>"""
INPUT = '<input semantic="VERTEX" source="#v" offset="0"/>'
TRIANGLES = f'<triangles material="x" count="4">{INPUT}<p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>'
SCENE = '<scene><instance_visual_scene url="#s"/></scene>'


def dae(
    faces: str = TRIANGLES, transform: str = '', unit: str = 'meter', metre: float = 1.0, scene: str = SCENE
) -> str:
    return DAE.format(faces=faces, transform=transform, unit=unit, metre=metre, scene=scene)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        (dae(), 1.0),
        (dae(unit='millimeter', metre=0.001, transform='<scale>1000 1000 500</scale>'), 0.5),
        (dae(transform='<matrix>2 0 0 5 0 2 0 0 0 0 2 0 0 0 0 1</matrix>'), 8.0),
        (dae(scene='').replace('<library_visual', '<off_visual').replace('</library_visual', '</off_visual'), 1.0),
        (dae(faces=f'<polylist>{INPUT}<vcount>3 3 3 3</vcount><p>0 2 1 0 1 3 0 3 2 1 2 3</p></polylist>'), 1.0),
        (dae(faces=f'<polygons>{INPUT}<p>0 2 1</p><p>0 1 3</p><p>0 3 2</p><p>1 2 3</p></polygons>'), 1.0),
        (dae(faces=f'<tristrips>{INPUT}<p>0 1 3 2 0 1</p></tristrips>'), 1.0),
        (dae(faces=f'<trifans>{INPUT}<p>0 1 3 2 1</p></trifans><triangles>{INPUT}<p>1 2 3</p></triangles>'), 1.0),
        (dae(faces=TRIANGLES + f'<lines count="1">{INPUT}<p>0 1</p></lines>'), 1.0),
    ],
)
def test_collada(tmp_path, text, expected):
    model = model_of(tmp_path, 'part.dae', text)
    assert volume(model) == pytest.approx(expected)
    assert model.nmeshface == 4


def test_where_a_node_of_collada_puts_its_triangles(tmp_path):
    """Turned by 90 degrees about z, then moved; faces still look out of a mirrored node."""
    file = tmp_path / 'part.dae'
    file.write_text(dae(transform='<translate>10 0 0</translate><rotate>0 0 2 90</rotate><scale>1 -1 1</scale>'))
    vertices, faces, _ = read_collada(file)
    np.testing.assert_allclose(vertices, [[10, 0, 0], [10, 1, 0], [12, 0, 0], [10, 0, 3]], atol=1e-12)
    a, b, c = vertices[faces].transpose(1, 0, 2)
    assert np.einsum('ij,ij->', a, np.cross(b, c)) / 6 == pytest.approx(1.0)


def test_parts_that_are_called_alike_in_two_geometries(tmp_path):
    text = dae()
    geometry = text[text.index('<geometry') : text.index('</library_geometries>')]
    other = geometry.replace('"g"', '"h"').replace('0 0 0 1 0 0', '9 9 9 1 0 0')
    text = text.replace(geometry, other + geometry)
    assert volume(model_of(tmp_path, 'part.dae', text)) == pytest.approx(1.0)


def test_a_visual_has_the_colour_of_most_of_its_collada_file(tmp_path):
    faces = TRIANGLES + f'<triangles material="y">{INPUT}<p>0 1 2</p></triangles>'
    (tmp_path / 'part.dae').write_text(dae(faces=faces))
    blue = mesh('visual', 'part.dae').replace('</v', '<material name=""><color rgba="0 0 1 1"/></material></v')
    model = attached(write(tmp_path, link('base', mesh('visual', 'part.dae'), blue)))
    np.testing.assert_allclose(model.geom_rgba, [[1, 0.5, 0, 1], [0, 0, 1, 1]])


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (dae(faces=''), 'it has no triangles'),
        (dae(faces=TRIANGLES.replace('0 2 1', '0 2 7')), "a face of 'g' names a vertex that is not there"),
        (dae().replace('url="#g"', 'url="#gone"'), "there is no element 'gone' for <instance_geometry>"),
        ('<COLLADA>', 'not an XML document: no element found'),
    ],
)
def test_collada_that_cannot_be_read_is_left_out(tmp_path, caplog, text, message):
    assert model_of(tmp_path, 'part.dae', text).ngeom == 0
    (warning,) = (warning for warning in warnings(caplog) if 'part.dae' in warning)
    assert 'left out meshes: ' in warning and f'not a readable COLLADA file: {message}' in warning


def test_other_formats_are_read_by_trimesh(tmp_path):
    trimesh = pytest.importorskip('trimesh')
    trimesh.Trimesh(POINTS, FACES).export(tmp_path / 'part.ply')
    assert volume(model_of(tmp_path, 'part.ply', (tmp_path / 'part.ply').read_bytes())) == pytest.approx(1.0)


def test_what_mujoco_cannot_compile_is_read_by_trimesh(tmp_path, caplog):
    pytest.importorskip('trimesh')
    broken = 'vn 0 0 1\n' + OBJ.replace('f 1 3 2', 'f 1//9 3//9 2//9')
    model = model_of(tmp_path, 'part.obj', broken)
    assert (model.nmesh, model.nmeshface) == (1, 4)
    assert not any('left out' in message for message in warnings(caplog))


def test_without_trimesh_other_formats_are_left_out_with_a_hint(tmp_path, caplog, monkeypatch):
    monkeypatch.setitem(sys.modules, 'trimesh', None)
    (tmp_path / 'part.ply').write_text('ply')
    model = attached(write(tmp_path, link('base', mesh('visual', 'part.ply'), shape('visual', '<sphere radius="1"/>'))))
    assert model.ngeom == 1
    (message,) = warnings(caplog)
    assert "pip install -e '.[geometry]'" in message and 'part.ply' in message
