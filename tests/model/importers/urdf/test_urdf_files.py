"""Files that a URDF refers to, wherever they are."""

from __future__ import annotations

import numpy as np
import pytest
from urdf_text import BOX, OBJ, attached, link, mesh, package, shape, warnings, write

from internutopia.model.importers.load import content_key, load_spec


@pytest.mark.parametrize('urdf', ['description/urdf', 'description', '.', 'other/urdf'])
def test_package_paths_are_found_up_the_folder_tree(tmp_path, monkeypatch, urdf):
    monkeypatch.delenv('ROS_PACKAGE_PATH', raising=False)
    path, _ = package(tmp_path, urdf=urdf)
    assert attached(path).nmesh == 1


@pytest.mark.parametrize('entry', ['space', 'space/description'])
def test_package_paths_are_found_in_the_ros_package_path(tmp_path, monkeypatch, caplog, entry):
    path, _ = package(tmp_path / 'space', urdf='../elsewhere')
    monkeypatch.delenv('ROS_PACKAGE_PATH', raising=False)
    assert attached(path).nmesh == 0
    assert 'no shape is left; left out meshes that are not found' in warnings(caplog)[0]
    monkeypatch.setenv('ROS_PACKAGE_PATH', f'/nowhere:{tmp_path / entry}')
    assert attached(path).nmesh == 1


def test_relative_and_file_paths_meshdir_and_equal_names(tmp_path, monkeypatch):
    monkeypatch.chdir('/')
    for name in 'visual/part.obj', 'collision/part.obj':
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(OBJ if 'visual' in name else OBJ.replace('1 0 0', '3 0 0'))
    parts = mesh('visual', 'visual/part.obj'), mesh('collision', f'file://{tmp_path}/collision/part.obj')
    model = attached(write(tmp_path, link('base', *parts)))
    sizes = [np.ptp(model.mesh_vert[int(model.mesh(i).vertadr[0]) :][:4], axis=0).max() for i in range(2)]
    assert max(sizes) > 1.5 * min(sizes)
    settings = '<mujoco><compiler meshdir="visual" strippath="true"/></mujoco>'
    assert attached(write(tmp_path, settings, link('base', mesh('collision', '/old/place/part.obj')))).nmesh == 1


@pytest.mark.parametrize(
    ('reference', 'place'),
    [
        ('meshes/part.obj', 'robot/meshes/part.obj'),  # and `meshdir`: it is there already
        ('part.obj', 'robot/meshes/part.obj'),
        ('meshes\\part.obj', 'robot/meshes/part.obj'),
        ('package:///robot/meshes/part.obj', 'robot/meshes/part.obj'),
        ('model://robot/meshes/part.obj', 'robot/meshes/part.obj'),
        ('package://described/meshes/part.obj', 'robot/meshes/part.obj'),  # its folder is called otherwise
        ('package:///described/meshes/part.obj', 'robot/meshes/part.obj'),
        ('other_description/part.obj', 'other_description/part.obj'),
        ('meshes/part.obj', 'robot/meshes/Part.OBJ'),
    ],
)
def test_sloppy_references(tmp_path, reference, place):
    file = tmp_path / place
    file.parent.mkdir(parents=True)
    file.write_text(OBJ)
    urdf = tmp_path / 'robot'
    settings = '<mujoco><compiler meshdir="meshes" discardvisual="true" angle="degree"/></mujoco>'
    model = attached(
        write(urdf / 'urdf' if '://' in reference else urdf, settings, link('a', mesh('visual', reference)))
    )
    assert model.nmesh == 1


def test_missing_meshes_are_left_out_with_one_warning(tmp_path, caplog):
    gone = mesh('visual', 'gone.stl'), mesh('collision', 'package://nowhere/hull.stl'), mesh('collision', 'gone.stl')
    path = write(tmp_path, link('base', *gone, shape('collision', BOX), mass=3.0))
    model = attached(path)
    (message,) = warnings(caplog)
    assert str(path) in message and 'ROS_PACKAGE_PATH' in message
    assert "'gone.stl' (link 'base'), 'package://nowhere/hull.stl' (link 'base')" in message
    assert model.body_mass.sum() == 3.0 and model.ngeom == 1
    assert model.geom_group[0] == 0  # what is left of the link is shown


def test_a_robot_without_any_of_its_meshes_keeps_its_masses(tmp_path, caplog):
    path = write(tmp_path, link('base', mesh('visual', 'gone.stl'), mass=3.0))
    model = attached(path)
    assert (model.ngeom, model.body_mass.sum()) == (0, 3.0)
    (message,) = warnings(caplog)
    assert 'no shape is left; left out meshes that are not found' in message and message.endswith(
        "'gone.stl' (link 'base')"
    )
    nothing = write(tmp_path, link('base', mesh('visual', 'gone.stl'), mass=0.0), name='nothing.urdf')
    with pytest.raises(
        ValueError, match=r"nothing\.urdf: link 'base': mesh 'gone\.stl' not found, .*; tried:\n.*/gone\.stl"
    ):
        load_spec(nothing)


def test_a_mesh_that_comes_later_changes_the_content_key(tmp_path):
    path = write(tmp_path, link('base', mesh('visual', 'late.obj'), shape('collision', BOX)))
    before = content_key(path)
    assert content_key(path) == before
    (tmp_path / 'late.obj').write_text(OBJ)
    assert content_key(path) != before
    assert attached(path).nmesh == 1
