"""Links, joints and errors of URDF files."""

from __future__ import annotations

import logging

import mujoco
import numpy as np
import pytest
from urdf_text import BOX, INERTIAL, OBJ, attached, bodies, joint, link, mesh, package, shape, warnings, write

from internutopia.model.importers.load import content_key, is_urdf, load_spec
from internutopia.model.importers.urdf import WORLD_LINK

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


@pytest.mark.parametrize(
    'text',
    [
        '\n\n<?xml version="1.0"?>\n{}\n\0',  # as some editors leave it
        '<?xml version="1.0" encoding="latin-1"?>{}<!-- caf\xe9 -->',
        '<!-- <link name="a"/> -->{}',
    ],
)
def test_files_as_they_come(tmp_path, text):
    robot = f"""<robot name="r" xmlns="http://www.ros.org" xmlns:xacro="http://ros.org/wiki/xacro">
        {link('a', shape('collision', '<box size="1, 2, 3"/>'))}{link('right hand')}
        <joint name="the wrist" type="revolute" drake:note="x"><parent link="a"/><child link="right hand"/>
        <origin xyz=" 1,2 3 " rpy=""/><limit lower="-inf" upper="2" effort="inf" drake:acceleration="9"/></joint>
        <drake:joint name="a"/><gazebo><plugin file="$(find x)"/></gazebo></robot>"""
    path = tmp_path / 'robot.xml'
    path.write_bytes(text.format(robot).encode('latin-1'))
    model = attached(path)
    assert bodies(model) == ['a', 'right hand']
    np.testing.assert_allclose(model.body('r/right hand').pos, [1, 2, 3])
    np.testing.assert_allclose(model.joint('r/the wrist').axis, [1, 0, 0])
    np.testing.assert_allclose(model.geom_size[0], [0.5, 1, 1.5])
    assert model.joint('r/the wrist').range[0] < -1e6 and model.joint('r/the wrist').range[1] == 2


def test_the_world_need_not_be_declared(tmp_path):
    path = write(tmp_path, link('base'), joint('anchor', 'world', 'base', 'fixed'))
    assert [body.name for body in load_spec(path).worldbody.bodies] == [WORLD_LINK]


def test_long_chains(tmp_path):
    count = 400
    chain = [joint(f'j{i}', f'l{i}', f'l{i + 1}') for i in range(count - 1)]
    path = write(tmp_path, *map(link, [f'l{i}' for i in range(count)]), *reversed(chain))
    assert bodies(attached(path)) == [f'l{i}' for i in range(count)]


def test_what_is_not_read_is_said_once(tmp_path, caplog):
    limit = '<limit lower="-1" upper="1" effort="1" velocity="3"/><safety_controller k_velocity="1"/>'
    path = write(
        tmp_path,
        '<gazebo/><gazebo/><transmission/>',
        link('a', shape('visual', BOX).replace('</v', '<material name="m"><texture filename="t.png"/></material></v')),
        link('b', '<contact/>' + INERTIAL.format(mass=3, i=1)),  # a second one
        joint('j', 'a', 'b', extra=limit),
    )
    with caplog.at_level(logging.INFO, 'internutopia'):
        model = attached(path)
    assert [record.getMessage() for record in caplog.records] == [
        f'{path}: only the first <inertial> is used: b',
        f'{path}: not read: <gazebo> (2), <transmission> (1), <contact> (1), <safety_controller> (1), '
        'textures of materials (1), velocity limits (1)',
    ]
    assert model.body('r/b').mass[0] == 1.0


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


def test_a_planar_joint_moves_across_its_axis(tmp_path):
    flat = joint('flat', 'a', 'b', 'planar').replace('xyz="0 0 1"', 'xyz="0 2 0"')
    model = attached(write(tmp_path, link('a'), link('b'), flat))
    assert [model.joint(i).name for i in range(model.njnt)] == ['r/flat_TX', 'r/flat_TY', 'r/flat_RZ']
    data = mujoco.MjData(model)
    data.qpos[:] = 0.3, -0.4, 0.2
    mujoco.mj_forward(model, data)
    moved = data.body('r/b').xpos - [0, 0, 0.5]
    assert moved[1] == pytest.approx(0) and np.linalg.norm(moved) == pytest.approx(0.5)
    np.testing.assert_allclose(data.body('r/b').xmat.reshape(3, 3) @ [0, 1, 0], [0, 1, 0], atol=1e-12)  # its own axis


def test_a_floating_joint_within_the_tree(tmp_path):
    model = attached(write(tmp_path, link('a'), link('b'), joint('loose', 'a', 'b', 'floating')))
    assert model.nv == 6
    assert [model.joint(i).name for i in range(4)] == ['r/loose_TX', 'r/loose_TY', 'r/loose_TZ', 'r/loose_R']
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 50)
    mujoco.mj_kinematics(model, data)
    time = 50 * model.opt.timestep
    fallen = 0.5 * 9.81 * time * (time + model.opt.timestep)  # semi-implicit Euler
    np.testing.assert_allclose(data.body('r/b').xpos, [0, 0, 0.5 - fallen], atol=1e-9)


def test_a_ball_joint(tmp_path):
    model = attached(write(tmp_path, link('a'), link('b'), joint('neck', 'a', 'b', 'spherical')))
    assert (model.nv, model.jnt_type[0]) == (3, mujoco.mjtJoint.mjJNT_BALL)


def test_limits_that_leave_no_room_are_left_out(tmp_path, caplog):
    model = attached(
        write(
            tmp_path,
            *map(link, 'abcd'),
            joint('zero', 'a', 'b', extra='<limit lower="0" upper="0" effort="0" velocity="0"/>'),
            joint('swapped', 'b', 'c', extra='<limit lower="1" upper="-1"/>'),
            joint('wheel', 'c', 'd', 'continuous', extra='<limit lower="-1" upper="1"/>'),
        )
    )
    assert not model.jnt_limited.any() and not model.jnt_actfrclimited.any()
    (message,) = warnings(caplog)
    assert message.endswith('left out limits whose lower end is not less than the upper one: zero, swapped')


def test_a_joint_that_mimics_none_moves_by_itself(tmp_path, caplog):
    path = write(
        tmp_path,
        *map(link, 'abcde'),
        joint('knee', 'a', 'b', extra='<mimic joint="knie"/>'),
        joint('self', 'b', 'c', extra='<mimic joint="self"/>'),
        joint('bolt', 'c', 'd', 'fixed', extra='<mimic joint="knee"/>'),  # it means nothing
        joint('foot', 'd', 'e', extra='<mimic joint="bolt"/>'),
    )
    model = attached(path)
    assert (model.neq, model.nv) == (0, 3)
    assert [message.removeprefix(f'{path}: mimics nothing, ') for message in warnings(caplog)] == [
        "'knie' is no other joint of one degree of freedom; known: 'foot', 'self': knee",
        "'self' is no other joint of one degree of freedom; known: 'foot', 'knee': self",
        "'bolt' is no other joint of one degree of freedom; known: 'knee', 'self': foot",
    ]


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
            [link('a', shape('collision', '<box size="1 1"/>'))],
            'line 3: link \'a\': <box size="1 1">: it must be 3 finite',
        ),
        ([link('a', shape('collision', '<box/>'))], "line 3: link 'a': <box> must have the attribute 'size'"),
        ([link('a', shape('visual', '<sphere radius="big"/>'))], '<sphere radius="big">: it must be 1 finite number$'),
        ([link('a', shape('collision', '<sphere radius="-1"/>'))], "link 'a': the size of a <sphere> must be positive"),
        ([link('a'), '<joint type="fixed"/>'], "line 4: <joint> must have the attribute 'name'"),
        ([link('a', mass=-2)], 'link \'a\': <mass value="-2.0">: must not be negative'),
        (
            [link('a', shape('collision', BOX).replace('<g', '<origin rpy="0 0 nan"/><g', 1))],
            'rpy="0 0 nan">: it must be 3',
        ),
        (
            [link('a'), link('b'), joint('j', 'a', 'b', 'revolut')],
            "line 5: joint 'j': .* type 'revolut'; did you mean 'rev",
        ),
        (
            [link('a'), link('b'), joint('j', 'a', 'b').replace('0 0 1', '0 0 0')],
            'joint \'j\': <axis xyz="0 0 0"> has no',
        ),
        (
            [link('a'), link('b'), joint('j', 'a', 'b', extra='<dynamics damping="-1"/>')],
            'damping="-1.0">: must not be',
        ),
        ([link('a'), '<joint name="j" type="fixed"><parent link="a"/></joint>'], "joint 'j': it has no <child>"),
        ([link('a'), '<link/>'], "line 4: <link> must have the attribute 'name'"),
        ([link('a'), joint('j', 'b', 'a')], "joint 'j': there is no link 'b' to be its parent; known: 'a'"),
        (['<mujoco><compiler boundmas="1"/></mujoco>', link('a')], 'boundmas'),
        (['<link name="a">'], 'not an XML document: mismatched tag: line 4'),
        (['<x:macro xmlns:x="http://www.ros.org/wiki/xacro"/>'], '<x:macro>: this is a xacro file; expand it first'),
        ([link('a'), '<xacro:arm/>'], 'line 4: <xacro:arm>: this is a xacro file'),
        ([link('${side}_arm')], 'line 3: <link>: this is a xacro file'),
        ([link('a', mesh('visual', '$(find arm)/a.stl'))], r'`xacro robot\.urdf > '),
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
