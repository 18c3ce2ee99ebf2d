"""MJCF files, with all that they refer to."""

from __future__ import annotations

import shutil
import struct
import zlib
from pathlib import Path

import mujoco
import numpy as np
import pytest

from internutopia.model.importers.load import content_key, load_spec

TETRAHEDRON = 'v 0 0 0\nv {size} 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n'

MAIN = """<mujoco model="robot">
  <compiler meshdir="shapes" texturedir="pictures" angle="degree"/>
  <default>
    <default class="stiff"><joint damping="3"/><geom friction="0.2"/></default>
  </default>
  <asset>
    <model name="tool" file="tool/tool.xml"/>
    <mesh name="hull" file="hull.obj"/>
    <texture name="paint" type="2d" file="paint.png"/>
    <material name="paint" texture="paint"/>
  </asset>
  <include file="parts/arm.xml"/>
  <worldbody>
    <body name="base">
      <geom type="mesh" mesh="hull" material="paint"/>
      <body name="link" childclass="stiff">
        <joint name="hinge" range="-90 90"/>
        <geom name="bar" type="capsule" size="0.1 0.5"/>
        <body name="hand"><joint name="wrist"/><geom size="0.1"/>
          <attach model="tool" body="tool" prefix="tool/"/>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="tendon"><joint joint="hinge" coef="1"/></fixed></tendon>
  <equality><joint joint1="hinge" joint2="wrist"/></equality>
  <actuator><position name="motor" joint="hinge" kp="7"/></actuator>
  <sensor><jointpos name="angle" joint="hinge"/></sensor>
  <keyframe><key name="home" qpos="0.5 0.25"/></keyframe>
</mujoco>"""
ARM = """<mujoco><asset><mesh name="arm" file="arm.obj"/></asset>
  <worldbody><body name="arm"><geom type="mesh" mesh="arm"/></body></worldbody></mujoco>"""
TOOL = """<mujoco model="tool"><compiler meshdir="own"/><asset><mesh name="blade" file="blade.obj"/></asset>
  <worldbody><body name="tool"><geom type="mesh" mesh="blade"/></body></worldbody></mujoco>"""


def png(color: tuple[int, int, int]) -> bytes:
    """A picture of one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))

    header = struct.pack('>IIBBBBB', 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b'\0' + bytes(color))
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', pixel) + chunk(b'IEND', b'')


@pytest.fixture
def robot(tmp_path) -> Path:
    """A model of several files in several folders."""
    folder = tmp_path / 'robot'
    files: dict[str, str | bytes] = {
        'main.xml': MAIN,
        'parts/arm.xml': ARM,
        'tool/tool.xml': TOOL,
        'shapes/hull.obj': TETRAHEDRON.format(size=1),
        'shapes/arm.obj': TETRAHEDRON.format(size=2),
        'tool/own/blade.obj': TETRAHEDRON.format(size=3),
        'pictures/paint.png': png((255, 0, 0)),
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return folder / 'main.xml'


def attached(*specs: mujoco.MjSpec) -> mujoco.MjModel:
    parent = mujoco.MjSpec()
    for i, spec in enumerate(specs):
        parent.attach(spec, frame=parent.worldbody.add_frame(pos=[0, 0, i]), prefix=f'r{i}/')
    return parent.compile()


def test_everything_survives_attaching_whatever_the_working_directory(robot, tmp_path, monkeypatch):
    monkeypatch.chdir(robot.parent)
    spec = load_spec(Path('main.xml'))
    monkeypatch.chdir(tmp_path)
    model = attached(spec)
    assert {model.mesh(i).name for i in range(model.nmesh)} == {'r0/hull', 'r0/arm', 'r0/tool/blade'}
    assert model.ntex == 1
    np.testing.assert_allclose(model.joint('r0/hinge').range, np.radians([-90, 90]))
    assert model.joint('r0/hinge').damping == 3
    assert model.geom('r0/bar').friction[0] == 0.2
    assert (model.nu, model.nsensor, model.neq, model.ntendon) == (1, 1, 1, 1)
    assert model.actuator('r0/motor').gainprm[0] == 7
    np.testing.assert_allclose(model.key('r0/home').qpos, [0.5, 0.25])


def test_two_folders_with_files_of_the_same_names_do_not_mix(robot, tmp_path):
    other = Path(shutil.copytree(robot.parent, tmp_path / 'other')) / 'main.xml'
    (other.parent / 'shapes' / 'hull.obj').write_text(TETRAHEDRON.format(size=9))
    model = attached(load_spec(robot), load_spec(other))
    extents = [
        np.ptp(model.mesh_vert[int(m.vertadr[0]) :][:4], axis=0).max() for m in map(model.mesh, ('r0/hull', 'r1/hull'))
    ]
    assert extents[1] > 4 * extents[0]


def test_every_call_gives_a_spec_of_its_own(robot):
    first = load_spec(robot)
    first.delete(first.body('link'))
    assert load_spec(robot).body('link') is not None


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('<mujoco><worldbody>', 'not an XML document|MISMATCHED'),
        ('', 'not an XML document'),
        ('<mujoco>\n<worldbody>\n<bdy/></worldbody></mujoco>', "unrecognized element.*\n.*'bdy', line 3"),
        ('<mujoco><worldbody><geom size="-1"/></worldbody></mujoco>', 'size 0 must be positive'),
        ('<mujoco><include file="gone.xml"/></mujoco>', r'gone\.xml'),
        ('<mujoco><asset><mesh file="gone.stl"/></asset></mujoco>', r'gone\.stl'),
        ('<sdf/>', 'sdf'),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path, text, message):
    path = tmp_path / 'broken.xml'
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        load_spec(path)
    assert str(path) in str(error.value)


def test_a_file_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match=r'gone\.xml'):
        load_spec(tmp_path / 'gone.xml')


def test_a_format_that_is_not_supported(tmp_path):
    (tmp_path / 'a.fbx').touch()
    with pytest.raises(ValueError, match=r'a\.fbx: the format must be one of \.usd'):
        load_spec(tmp_path / 'a.fbx')


# Content key


FILES = [
    'main.xml',
    'parts/arm.xml',
    'tool/tool.xml',
    'shapes/hull.obj',
    'shapes/arm.obj',
    'tool/own/blade.obj',
    'pictures/paint.png',
]


@pytest.mark.parametrize('name', FILES)
def test_the_content_key_follows_every_file(robot, name):
    before = content_key(robot)
    assert content_key(robot) == before
    file = robot.parent / name
    file.write_bytes(file.read_bytes() + b'\n')
    assert content_key(robot) != before


def test_the_content_key_is_that_of_the_content(robot, tmp_path):
    copy = Path(shutil.copytree(robot.parent, tmp_path / 'copy')) / 'main.xml'
    before = content_key(robot)
    assert content_key(copy) == before
    (robot.parent / 'unrelated.obj').write_text('not referred to')
    assert content_key(robot) == before
    hull, arm = robot.parent / 'shapes' / 'hull.obj', robot.parent / 'shapes' / 'arm.obj'
    contents = hull.read_bytes(), arm.read_bytes()
    hull.write_bytes(contents[1] + b'\n')
    arm.write_bytes(contents[0] + b'\n')
    exchanged = content_key(robot)
    hull.write_bytes(contents[0] + b'\n')
    arm.write_bytes(contents[1] + b'\n')
    assert len({before, exchanged, content_key(robot)}) == 3


def test_the_content_key_sees_a_reference_that_is_added(robot):
    before = content_key(robot)
    (robot.parent / 'new.xml').write_text('<mujoco/>')
    robot.write_text(MAIN.replace('<worldbody>', '<include file="new.xml"/><worldbody>'))
    added = content_key(robot)
    (robot.parent / 'new.xml').write_text('<mujoco><worldbody/></mujoco>')
    assert len({before, added, content_key(robot)}) == 3
