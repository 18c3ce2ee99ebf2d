"""Shapes and meshes of URDF files: where files are, their formats, their appearance."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from urdf_text import BOX, FLAT_OBJ, OBJ, attached, joint, link, mesh, shape, warnings, write

from internutopia.model.importers.load import content_key

# Geometry


def test_visuals_are_kept_and_do_not_collide(tmp_path):
    path = write(
        tmp_path,
        '<material name="red"><color rgba="1 0 0 1"/></material>',
        link(
            'base',
            f'<visual name="shell"><geometry>{BOX}</geometry><material name="red"/></visual>',
            f'<collision name="hull"><geometry>{BOX}</geometry></collision>',
        ),
        link('bare', shape('collision', '<cylinder radius="0.1" length="1"/>')),
        joint('j', 'base', 'bare'),
    )
    model = attached(path)
    shell, hull = model.geom('r/shell'), model.geom('r/hull')
    assert (int(shell.contype[0]), int(shell.conaffinity[0]), int(shell.group[0])) == (0, 0, 2)
    assert (int(hull.contype[0]), int(hull.conaffinity[0]), int(hull.group[0])) == (1, 1, 3)
    np.testing.assert_allclose(shell.rgba, [1, 0, 0, 1])
    bare = next(i for i in range(model.ngeom) if model.geom_bodyid[i] == model.body('r/bare').id)
    assert (model.geom_group[bare], model.geom_contype[bare]) == (0, 1)
    np.testing.assert_allclose(model.geom_size[bare], [0.1, 0.5, 0])


def test_open_visual_meshes_are_fine(tmp_path):
    (tmp_path / 'flat.obj').write_text(FLAT_OBJ)
    assert attached(write(tmp_path, link('base', mesh('visual', 'flat.obj')))).ngeom == 1


def test_a_mesh_that_cannot_be_read_is_left_out_with_one_warning(tmp_path, caplog):
    (tmp_path / 'part.dae').write_text('not even XML')
    path = write(
        tmp_path, link('base', mesh('visual', 'part.dae'), mesh('collision', 'part.dae'), shape('visual', BOX))
    )
    model = attached(path)
    assert (model.ngeom, model.nmesh) == (1, 0)
    (message,) = warnings(caplog)
    assert str(path) in message and str(tmp_path / 'part.dae') in message


def test_an_obj_has_the_look_of_most_of_its_faces_unless_the_link_names_one(tmp_path):
    Image.new('RGB', (4, 2), (10, 20, 30)).save(tmp_path / 'wood.jpg')
    (tmp_path / 'part.mtl').write_text('newmtl red\nKd 1 0 0\nnewmtl wood\nKd 1 1 1\nmap_Kd -clamp on wood.jpg\n')
    points, _, _ = OBJ.partition('f ')
    faces = (
        'vt 0 0\nvt 1 0\nvt 1 1\nusemtl red\nf 1/1 3/2 2/3\nusemtl {}\nf 1/1 2/2 4/3\nf 2/1 3/2 4/3\nf 1/1 4/2 3/3\n'
    )
    for name in 'wood', 'red':
        (tmp_path / f'{name}.obj').write_text(f'mtllib part.mtl\n{points}{faces.format(name)}')
    own = '<material name="m"><color rgba="0 0 1 1"/></material>'
    parts = [
        mesh('visual', 'wood.obj'),
        mesh('visual', 'red.obj'),
        mesh('visual', 'red.obj').replace('</v', own + '</v'),
    ]
    path = write(tmp_path, link('base', *parts))
    model = attached(path)
    np.testing.assert_allclose(model.geom_rgba, [[1, 1, 1, 1], [1, 0, 0, 1], [0, 0, 1, 1]])
    assert (model.ntex, model.nmat) == (1, 1) and model.geom_matid[0] == 0 and model.geom_matid[1] == -1
    np.testing.assert_allclose(model.tex_data.reshape(-1, 3), [[10, 20, 30]] * 8, atol=3)
    before = content_key(path)
    Image.new('RGB', (4, 2)).save(tmp_path / 'wood.jpg')
    assert content_key(path) != before


def test_meshes_of_one_name_are_told_apart(tmp_path):
    for folder, size in ('visual', 1), ('collision', 3):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / 'part.obj').write_text(OBJ.replace('1 0 0', f'{size} 0 0'))
    parts = mesh('visual', 'visual/part.obj'), mesh('collision', 'collision/part.obj')
    double = mesh('collision', 'visual/part.obj').replace('obj"', 'obj" scale="2"')  # one factor for all axes
    model = attached(write(tmp_path, link('base', *parts, double)))
    lengths = [2 * model.geom_aabb[i, 3:].max() for i in range(3)]
    assert model.nmesh == 3
    np.testing.assert_allclose(lengths, [np.sqrt(2), np.sqrt(10), np.sqrt(8)], rtol=0.15)  # boxes along other axes


def test_equal_names_of_shapes(tmp_path):
    named = shape('collision', BOX).replace('<collision', '<collision name="hull"')
    model = attached(write(tmp_path, link('a', named), link('b', named), joint('j', 'a', 'b')))
    assert [model.geom(i).name for i in range(2)] == ['r/hull', '']


def test_a_flat_collider_is_left_out_and_still_seen(tmp_path, caplog):
    (tmp_path / 'flat.obj').write_text(FLAT_OBJ)
    parts = mesh('visual', 'flat.obj'), mesh('collision', 'flat.obj')
    model = attached(write(tmp_path, link('base', *parts, shape('collision', BOX))))
    (message,) = warnings(caplog)
    assert 'left out meshes as colliders' in message and 'flat.obj (mesh' in message
    assert sorted(zip(model.geom_type.tolist(), model.geom_contype.tolist(), strict=True)) == [(6, 1), (7, 0)]
    alone = attached(write(tmp_path, link('base', mesh('collision', 'flat.obj')), name='alone.urdf'))
    assert (alone.ngeom, alone.nmesh) == (0, 0)


@pytest.mark.parametrize(
    'part',
    ['<visual/>', '<visual><geometry/></visual>', shape('visual', '<cone/>'), shape('visual', '<sphere radius="0"/>')],
)
def test_shapes_without_form_or_extent_are_left_out(tmp_path, caplog, part):
    model = attached(write(tmp_path, link('base', part, shape('collision', BOX))))
    assert model.ngeom == 1
    (message,) = warnings(caplog)
    assert 'left out a visual' in message and message.endswith(': base')
