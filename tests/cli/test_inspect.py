"""`internutopia inspect`: what it says of files of each format."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from internutopia.cli import commands

ARM = """
<mujoco model="arm">
  <worldbody>
    <geom name="ground" type="plane" size="0 0 1"/>
    <body name="base"><geom type="box" size="0.1 0.2 0.3" mass="4"/><camera name="eye"/>
      <body name="upper" pos="0 0 0.3">
        <joint name="shoulder" axis="0 1 0" range="-90 90" armature="0.02" damping="0.3"/>
        <geom name="rod" type="capsule" size="0.02 0.15" mass="0.5"/>
        <geom type="sphere" size="0.1" contype="0" conaffinity="0" mass="0"/>
        <body name="tip"><joint name="slide" type="slide" axis="0 0 1"/><geom size="0.01" mass="0.25"/></body>
      </body>
    </body>
    <body name="crate"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
  </worldbody>
  <equality><weld body1="tip" body2="crate"/></equality>
  <actuator>
    <position name="turn" joint="shoulder" kp="50" kv="5" forcerange="-8 8"/>
    <motor name="push" joint="slide" gear="2" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""
URDF = """
<robot name="cart">
  <link name="body"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="gone.stl"/></geometry></visual></link>
</robot>
"""
USD = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "World" {
    def Cube "box" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"]) {
        double size = 0.5
        float physics:mass = 3
    }
    def PhysicsFixedJoint "off" {
        rel physics:body1 = </World/box>
        bool physics:jointEnabled = 0
    }
}
"""


def inspect(*arguments: object) -> Result:
    return CliRunner().invoke(commands.app, ['inspect', *map(str, arguments)])


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Writes a file and gives its path."""

    def write(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return write


def test_the_tree_of_a_robot(write: Any) -> None:
    result = inspect(write('arm.xml', ARM))
    assert result.exit_code == 0
    for line in (
        'arm.xml: 4 bodies, 3 joints, 8 degrees of freedom, 5.75 kg',
        '├── collider ground plane, friction 1',
        'base 4 kg',
        'collider box 0.2 x 0.4 x 0.6 m, friction 1',
        'camera eye',
        'joint shoulder: revolute, axis (0, 1, 0), -1.571..1.571 rad = -90..90°, drive 50 N·m/rad, 5 N·m·s/rad, '
        'at most 8 N·m, damping 0.3, armature 0.02',
        'collider rod capsule 0.02 x 0.3 m',
        '1 visual geom',
        'joint slide: prismatic, axis (0, 0, 1)\n',
        'crate 1 kg',
        'upper 0.5 kg at (0, 0, 0.3) m\n',
        '- turn: position of joint shoulder, force -8..8\n',
        '- push: effort of joint slide, gear 2, control -1..1\n',
        '- weld: tip, crate',
    ):
        assert line in result.stdout, line
    assert 'dropped' not in result.stdout


def test_json(write: Any) -> None:
    data = json.loads(inspect(write('arm.xml', ARM), '--json').stdout)
    assert (data['mass'], data['dof'], [each['name'] for each in data['actuators']]) == (5.75, 8, ['turn', 'push'])
    base, crate = data['world']['bodies']
    shoulder = base['bodies'][0]['joints'][0]
    assert (shoulder['type'], shoulder['stiffness'], shoulder['damping'], shoulder['max_force']) == (
        'revolute',
        50,
        5,
        8,
    )
    assert shoulder['limits'] == pytest.approx([-1.5707963, 1.5707963])
    assert base['bodies'][0]['position'] == [0, 0, 0.3] and base['cameras'] == ['eye']
    assert crate['joints'][0]['type'] == 'free' and crate['joints'][0]['limits'] is None


def test_what_was_dropped(write: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Once, at the end, and not in the log as well."""
    with caplog.at_level(logging.WARNING, 'internutopia'):
        result = inspect(write('scene.usda', USD))
    assert result.exit_code == 0 and not caplog.records
    assert '/World/box 3 kg' in result.stdout
    assert 'dropped\n- switched off joint: /World/off' in result.stdout
    assert json.loads(inspect(write('scene.usda', USD), '--json').stdout)['dropped'] == [
        'switched off joint: /World/off'
    ]


def test_what_of_a_urdf_was_dropped_and_not_read(write: Any) -> None:
    dropped = json.loads(inspect(write('cart.urdf', URDF.replace('</robot>', '<gazebo/></robot>')), '--json').stdout)[
        'dropped'
    ]
    assert dropped == [
        'no shape is left; left out meshes that are not found beside or above the file, or in ROS_PACKAGE_PATH: '
        "'gone.stl' (link 'body')",
        'not read: <gazebo> (1)',
    ]


def test_packaged_assets_by_their_names() -> None:
    result = inspect('robots/jetbot/jetbot.usd')
    assert result.exit_code == 0 and 'left_wheel_joint: revolute' in result.stdout


@pytest.mark.parametrize(
    ('name', 'text', 'message'),
    [
        ('gone.xml', None, "gone.xml' not found; tried"),
        ('broken.usda', '#usda 1.0\ndef Xform "World" {', 'broken.usda'),
        ('broken.xml', '<mujoco><worldbody></mujoco>', 'broken.xml: not an XML document'),
        ('cart.urdf', URDF.replace('"2"', '"0"'), 'gone.stl'),
        ('notes.txt', 'hello', 'notes.txt'),
    ],
)
def test_a_file_that_cannot_be_read(write: Any, tmp_path: Path, name: str, text: str | None, message: str) -> None:
    result = inspect(tmp_path / name if text is None else write(name, text))
    assert result.exit_code == 2
    assert 'internutopia inspect: ' in result.output and message in result.output
    assert 'Traceback' not in result.output


@pytest.mark.slow
def test_a_file_of_unknown_origin(write: Any) -> None:
    path = write('arm.xml', ARM)
    assert inspect(path, '--time', 600).stdout == inspect(path).stdout
    grid = '<replicate count="40000"><body><geom size="1"/></body></replicate>'
    result = inspect(write('endless.xml', f'<mujoco><worldbody>{grid}</worldbody></mujoco>'), '--time', 0.01)
    assert result.exit_code == 2
    assert 'endless.xml: cannot be read and compiled: it takes longer than 0.01 s' in result.stderr
