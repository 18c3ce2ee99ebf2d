from __future__ import annotations

import logging
from pathlib import Path

import mujoco
import numpy as np
import pytest
from PIL import Image

from internutopia.core.scene.importer import content_key, is_urdf, load_spec
from internutopia.core.scene.urdf import WORLD_LINK

OBJ = 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n'
FLAT_OBJ = 'v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3\nf 1 3 4\n'
INERTIAL = '<inertial><mass value="{mass}"/><inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial>'


def link(name: str, *parts: str, mass: float = 1.0) -> str:
    inertial = INERTIAL.format(mass=mass, i=0.01) if mass else ''
    return f'<link name="{name}">{inertial}{"".join(parts)}</link>'


def joint(name: str, parent: str, child: str, kind: str = 'revolute', extra: str = '') -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="0 0 0.5"/><axis xyz="0 0 1"/>{extra}</joint>'
    )


def shape(role: str, geometry: str) -> str:
    return f'<{role}><geometry>{geometry}</geometry></{role}>'


def mesh(role: str, file: str) -> str:
    return shape(role, f'<mesh filename="{file}"/>')


BOX = '<box size="0.2 0.2 0.2"/>'


def write(folder: Path, *parts: str, name: str = 'robot.urdf') -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'<?xml version="1.0"?>\n<robot name="r">\n{chr(10).join(parts)}\n</robot>')
    return path


def attached(path: Path, *, floating: bool = False) -> mujoco.MjModel:
    """The model of a URDF as a child of another spec, as scenes are composed."""
    parent, child = mujoco.MjSpec(), load_spec(path)
    if floating:
        child.worldbody.bodies[0].add_freejoint(name='root')
    parent.attach(child, frame=parent.worldbody.add_frame(), prefix='r/')
    return parent.compile()


def bodies(model: mujoco.MjModel) -> list[str]:
    return [model.body(i).name.removeprefix('r/') for i in range(1, model.nbody)]


# Structure


def test_every_link_is_a_body_fixed_ones_and_the_root_included(tmp_path):
    path = write(
        tmp_path,
        *(link('base'), link('arm'), link('tip', mass=0), link('camera')),
        *(joint('shoulder', 'base', 'arm'), joint('a', 'arm', 'tip', 'fixed'), joint('b', 'base', 'camera', 'fixed')),
    )
    model = attached(path)
    assert set(bodies(model)) == {'base', 'arm', 'tip', 'camera'}
    assert model.body_parentid[model.body('r/tip').id] == model.body('r/arm').id
    np.testing.assert_allclose(model.body('r/tip').pos, [0, 0, 0.5])
    assert attached(path, floating=True).nv == 7


@pytest.mark.parametrize(('kind', 'roots', 'free'), [('fixed', [WORLD_LINK], 0), ('floating', ['base'], 1)])
def test_a_link_called_world(tmp_path, kind, roots, free):
    path = write(tmp_path, link('world', mass=0), link('base'), joint('anchor', 'world', 'base', kind))
    spec = load_spec(path)
    assert [body.name for body in spec.worldbody.bodies] == roots
    assert spec.body('base') is not None
    assert sum(j.type == mujoco.mjtJoint.mjJNT_FREE for j in spec.joints) == free
    spec.compile()


def test_an_xml_file_with_a_robot_inside_is_urdf(tmp_path):
    path = write(tmp_path, link('base'), name='robot.xml')
    assert is_urdf(path)
    assert bodies(attached(path)) == ['base']


def test_massless_and_impossible_links_can_float_and_swing(tmp_path):
    impossible = '<inertial><mass value="1"/><inertia ixx="1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'
    path = write(
        tmp_path,
        *(link('dummy', mass=0), link('gimbal', mass=0), link('odd', impossible, mass=0)),
        *(joint('yaw', 'dummy', 'gimbal'), joint('pitch', 'gimbal', 'odd')),
    )
    model = attached(path, floating=True)
    assert 0 < model.body('r/dummy').mass[0] <= 1e-6
    a, b, c = sorted(model.body('r/odd').inertia)
    assert a + b >= c
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 100)
    assert np.isfinite(data.qpos).all()


def test_the_files_own_compiler_settings_win(tmp_path):
    settings = '<mujoco><compiler boundmass="0.5"/></mujoco>'
    model = attached(write(tmp_path, settings, link('base', mass=0), link('b'), joint('j', 'base', 'b')))
    assert model.body('r/base').mass[0] == 0.5


# Joints


def test_limits_dynamics_and_effort(tmp_path):
    full = '<limit lower="-1" upper="2" effort="10" velocity="3"/><dynamics damping="0.5" friction="0.25"/>'
    model = attached(
        write(
            tmp_path,
            *map(link, 'abcde'),
            joint('full', 'a', 'b', extra=full),
            joint('half', 'b', 'c', 'prismatic', extra='<limit lower="-1.5" effort="1" velocity="1"/>'),
            joint('wheel', 'c', 'd', 'continuous', extra='<limit effort="4" velocity="1"/>'),
            joint('bare', 'd', 'e'),
        )
    )
    whole = model.joint('r/full')
    np.testing.assert_allclose(whole.range, [-1, 2])
    assert (whole.damping, whole.frictionloss, whole.limited) == (0.5, 0.25, 1)
    assert model.jnt_actfrclimited[whole.id] == 1
    np.testing.assert_allclose(model.jnt_actfrcrange[whole.id], [-10, 10])
    np.testing.assert_allclose(model.joint('r/half').range, [-1.5, 0])
    assert model.joint('r/half').limited == 1
    assert model.joint('r/half').type == mujoco.mjtJoint.mjJNT_SLIDE
    for name in 'wheel', 'bare':
        assert model.joint(f'r/{name}').limited == 0
    np.testing.assert_allclose(model.jnt_actfrcrange[model.joint('r/wheel').id], [-4, 4])


def test_a_mimic_joint_follows_its_leader(tmp_path):
    path = write(
        tmp_path,
        *map(link, 'abc'),
        joint('leader', 'a', 'b', 'continuous'),
        joint('follower', 'a', 'c', 'continuous', extra='<mimic joint="leader" multiplier="-2" offset="0.1"/>'),
    )
    model = attached(path)
    data = mujoco.MjData(model)
    model.opt.gravity = 0
    assert model.neq == 1
    np.testing.assert_allclose(model.eq_data[0, :2], [0.1, -2])
    for _ in range(2000):
        data.qfrc_applied[model.joint('r/leader').dofadr[0]] = 0.05 - 0.1 * data.joint('r/leader').qvel[0]
        mujoco.mj_step(model, data)
    leader, follower = data.joint('r/leader').qpos[0], data.joint('r/follower').qpos[0]
    assert abs(leader) > 0.2
    assert follower == pytest.approx(0.1 - 2 * leader, abs=2e-3)


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


def package(folder: Path, *, urdf: str = 'description/urdf') -> tuple[Path, Path]:
    """A ROS package called `description` with a mesh; its URDF lies in the folder `urdf`."""
    file = folder / 'description' / 'meshes' / 'part.obj'
    file.parent.mkdir(parents=True)
    file.write_text(OBJ)
    return write(folder / urdf, link('base', mesh('collision', 'package://description/meshes/part.obj'))), file


@pytest.mark.parametrize('urdf', ['description/urdf', 'description', '.', 'other/urdf'])
def test_package_paths_are_found_up_the_folder_tree(tmp_path, monkeypatch, urdf):
    monkeypatch.delenv('ROS_PACKAGE_PATH', raising=False)
    path, _ = package(tmp_path, urdf=urdf)
    assert attached(path).nmesh == 1


@pytest.mark.parametrize('entry', ['space', 'space/description'])
def test_package_paths_are_found_in_the_ros_package_path(tmp_path, monkeypatch, entry):
    path, _ = package(tmp_path / 'space', urdf='../elsewhere')
    with pytest.raises(ValueError, match=r"link 'base': mesh 'package://description/meshes/part.obj' not found"):
        load_spec(path)
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


def test_open_visual_meshes_are_fine(tmp_path):
    (tmp_path / 'flat.obj').write_text(FLAT_OBJ)
    assert attached(write(tmp_path, link('base', mesh('visual', 'flat.obj')))).ngeom == 1


def test_a_mesh_that_cannot_be_read_is_left_out_with_one_warning(tmp_path, caplog):
    (tmp_path / 'part.dae').write_text('not even XML')
    path = write(
        tmp_path, link('base', mesh('visual', 'part.dae'), mesh('collision', 'part.dae'), shape('visual', BOX))
    )
    with caplog.at_level(logging.WARNING, 'internutopia'):
        model = attached(path)
    assert (model.ngeom, model.nmesh) == (1, 0)
    (message,) = [record.getMessage() for record in caplog.records]
    assert str(path) in message and str(tmp_path / 'part.dae') in message


def test_other_mesh_formats_are_read_by_trimesh(tmp_path):
    trimesh = pytest.importorskip('trimesh')
    trimesh.creation.box((1, 2, 3)).export(tmp_path / 'part.ply')
    model = attached(write(tmp_path, link('base', mesh('collision', 'part.ply'), mass=0)))
    assert model.body('r/base').mass[0] == pytest.approx(6000)  # 1000 kg/m3


def test_a_unit_in_a_collada_file_counts(tmp_path):
    pytest.importorskip('collada')
    (tmp_path / 'part.dae').write_text("""<?xml version="1.0"?>
        <COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
        <asset><unit name="millimeter" meter="0.001"/><up_axis>Z_UP</up_axis></asset>
        <library_geometries><geometry id="g"><mesh>
        <source id="p"><float_array id="a" count="12">0 0 0 100 0 0 0 200 0 0 0 300</float_array>
        <technique_common><accessor source="#a" count="4" stride="3"><param name="X" type="float"/>
        <param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
        <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
        <triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p></triangles>
        </mesh></geometry></library_geometries>
        <library_visual_scenes><visual_scene id="s"><node id="n"><instance_geometry url="#g"/></node></visual_scene>
        </library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>""")
    model = attached(write(tmp_path, link('base', mesh('collision', 'part.dae'), mass=0)))
    assert model.body('r/base').mass[0] == pytest.approx(0.1 * 0.2 * 0.3 / 6 * 1000)


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


# Errors


@pytest.mark.parametrize(
    ('parts', 'message'),
    [
        ([], 'there must be one root link, found no link'),
        ([link('a'), link('b')], "one root link, found 'a', 'b'"),
        ([link('a'), link('a')], "more than one link is called 'a'"),
        ([*map(link, 'abc'), joint('j', 'a', 'b'), joint('j', 'b', 'c')], "more than one joint is called 'j'"),
        ([link('torso'), link('arm'), joint('j', 'torsoo', 'arm')], "'j': there is no link 'torsoo' .* 'torso'"),
        ([*map(link, 'abc'), joint('x', 'a', 'c'), joint('y', 'b', 'c')], "'y': link 'c' has a parent already, .*'a'"),
        ([*map(link, 'abc'), joint('x', 'b', 'c'), joint('y', 'c', 'b')], 'is its own ancestor'),
        (
            [link('a'), link('b'), joint('knee', 'a', 'b', extra='<mimic joint="knie"/>')],
            "'knee': there is no joint 'knie' to mimic; did you mean 'knee'",
        ),
        ([link('a', shape('collision', '<box size="1 1"/>'))], "\n.*'box', line 3"),
        ([link('a'), link('b'), joint('j', 'a', 'b', 'screw')], "joint type.*\n.*'joint', line 5"),
        ([link('a', mesh('visual', 'gone.stl'))], r"link 'a': mesh 'gone\.stl' not found; tried:\n.*gone\.stl"),
        ([link('a', shape('collision', '<sphere radius="-1"/>'))], 'size 0 must be positive'),
        (['<link name="a">'], 'not an XML document: mismatched tag: line 4'),
        (['<x:macro xmlns:x="http://www.ros.org/wiki/xacro"/>'], 'this is a xacro file'),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path, parts, message):
    path = write(tmp_path, *parts)
    with pytest.raises(ValueError, match=message) as error:
        load_spec(path)
    assert str(path) in str(error.value)


def test_the_content_key_follows_the_file_and_its_meshes(tmp_path):
    path, file = package(tmp_path)
    keys = [content_key(path), content_key(path)]
    file.write_text(OBJ + '\n')
    keys.append(content_key(path))
    path.write_text(path.read_text() + '\n')
    keys.append(content_key(path))
    assert keys[0] == keys[1] and len(set(keys)) == 3
