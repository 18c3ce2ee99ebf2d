"""Masses of links of URDF files, against the files and against formulas."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from urdf_text import BOX, attached, joint, link, mesh, shape, warnings, write

COLLIDER = shape('collision', BOX)


def inertial(mass: float, *moments: float, origin: str = '') -> str:
    """Moments: xx, yy, zz, then xy, xz, yz."""
    keys = ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz')
    values = ' '.join(f'{key}="{value}"' for key, value in zip(keys, moments, strict=False))
    inertia = f'<inertia {values}/>' if moments else ''
    return f'<inertial>{origin}<mass value="{mass}"/>{inertia}</inertial>'


def links(*inertials: str) -> list[str]:
    """Links `l0`, `l1`, ... that hang on each other by joints that turn."""
    parts = [link(f'l{i}', each, mass=0) for i, each in enumerate(inertials)]
    return [*parts, *(joint(f'j{i}', f'l{i - 1}', f'l{i}') for i in range(1, len(inertials)))]


def test_links_without_a_mass_weigh_nothing_if_others_have_one(tmp_path, caplog):
    frame = link('frame', COLLIDER, mass=0), joint('weld', 'base', 'frame', 'fixed')
    model = attached(
        write(tmp_path, link('base', COLLIDER, mass=2.5), link('arm', mass=0.75), *frame, joint('j', 'base', 'arm'))
    )
    assert model.body_mass.sum() == 3.25
    assert model.body('r/frame').mass[0] == 0
    assert not warnings(caplog)


def test_without_any_mass_the_colliders_weigh_as_water(tmp_path, caplog):
    ball = shape('collision', '<sphere radius="0.1"/>')
    path = write(
        tmp_path,
        link('base', COLLIDER, shape('visual', '<box size="9 9 9"/>'), mass=0),
        link('arm', ball, mass=0),
        joint('j', 'base', 'arm'),
    )
    model = attached(path)
    np.testing.assert_allclose(model.body('r/base').mass, 1000 * 0.2**3)
    np.testing.assert_allclose(model.body('r/arm').mass, 1000 * 4 / 3 * np.pi * 0.1**3)
    (message,) = warnings(caplog)
    assert 'no link has a mass' in message


def test_massless_links_that_move_do_not_change_the_whole(tmp_path):
    """As a wrist of three joints, and a frame that turns with nothing on it."""
    wrist = links(inertial(2.0, 0.1, 0.1, 0.1), '', '', inertial(0.5, 0.01, 0.01, 0.01))
    path = write(
        tmp_path,
        *wrist,
        link('idle', mass=0),
        joint('spin', 'l3', 'idle'),
        link('tip', mass=0),
        joint('slide', 'l0', 'tip', 'prismatic'),
    )
    model = attached(path, floating=True)
    assert model.nv == 6 + 5
    assert model.body_mass.sum() == pytest.approx(2.5, abs=1e-5)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 100)
    assert np.isfinite(data.qpos).all() and not any(warning.number for warning in data.warning)


def test_an_inertia_in_turned_axes(tmp_path):
    """Of a box, in the axes of an origin that is rolled by 90 degrees, and with products about the z axis."""
    quarter, third = np.pi / 2, np.pi / 3
    turn = np.array([[np.cos(third), -np.sin(third), 0], [np.sin(third), np.cos(third), 0], [0, 0, 1]])
    xx, yy, zz = 0.03, 0.02, 0.04
    tensor = turn @ np.diag([xx, yy, zz]) @ turn.T
    origin = f'<origin xyz="0.1 0.2 0.3" rpy="{quarter} 0 0"/>'
    values = (*tensor.diagonal(), tensor[0, 1], tensor[0, 2], tensor[1, 2])
    model = attached(write(tmp_path, link('base', inertial(1.0, *values, origin=origin), mass=0)))
    body = model.body('r/base')
    np.testing.assert_allclose(body.ipos, [0.1, 0.2, 0.3])
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, body.iquat)
    axes = axes.reshape(3, 3)
    roll = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    np.testing.assert_allclose(axes @ np.diag(body.inertia) @ axes.T, roll @ tensor @ roll.T, atol=1e-12)


def test_impossible_inertias_are_balanced_and_named_once(tmp_path, caplog):
    rounded = 0.02, 0.0333, 0.0534  # a plate, in three digits: more than 0.0533
    path = write(
        tmp_path,
        *links(
            inertial(1, 1, 0.1, 0.1), inertial(1, 0.3, -0.1, 0.2), inertial(1, *rounded), inertial(1, 0.2, 0.2, 0.3)
        ),
    )
    model = attached(path)
    inertias = [model.body(f'r/l{i}').inertia for i in range(4)]
    np.testing.assert_allclose(inertias[0], [0.4] * 3)  # the mean, as MuJoCo's balanceinertia
    np.testing.assert_allclose(inertias[1], [0.2] * 3)  # of the absolute values
    np.testing.assert_allclose(np.sort(inertias[2]), rounded, rtol=2e-3)
    np.testing.assert_allclose(np.sort(inertias[3]), [0.2, 0.2, 0.3])
    (message,) = warnings(caplog)
    assert message.endswith('balanced a physically impossible inertia: l0, l1')
    attached(path, floating=True)


def test_a_mass_without_inertia_is_spread_over_the_colliders(tmp_path):
    box = shape('collision', '<box size="0.2 0.4 0.6"/>')
    origin = '<origin xyz="0 0 0.05"/>'
    for given in (), (0, 0, 0), (1e-20, 0, 0):  # rounding
        path = write(tmp_path, link('base', inertial(3.0, *given, origin=origin), box, mass=0))
        body = attached(path, floating=True).body('r/base')
        assert body.mass[0] == 3.0
        np.testing.assert_allclose(body.ipos, [0, 0, 0.05])
        squares = np.array([0.2, 0.4, 0.6]) ** 2
        np.testing.assert_allclose(np.sort(body.inertia), np.sort(3.0 / 12 * (squares.sum() - squares)))


def test_a_mass_without_inertia_and_colliders_is_a_point(tmp_path):
    """A pendulum of 0.25 m: its inertia about the joint is m l^2."""
    bob = link('bob', inertial(0.8, 0, 0, 0, origin='<origin xyz="0.25 0 0"/>'), mass=0)
    model = attached(write(tmp_path, link('base'), bob, joint('j', 'base', 'bob')))
    assert model.dof_M0[0] == pytest.approx(0.8 * 0.25**2, rel=1e-6)


def test_masses_of_links_whose_meshes_are_left_out(tmp_path):
    path = write(
        tmp_path,
        link('base', inertial(3.0), mesh('collision', 'gone.stl'), mass=0),
        link('arm', COLLIDER),
        joint('j', 'base', 'arm'),
    )
    assert attached(path, floating=True).body_mass.sum() == 4.0


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
