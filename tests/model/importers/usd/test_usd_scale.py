"""The scale of a USD file: as if an `Xform` with that scale was above it, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.importers import LoadOptions
from internutopia.model.importers.load import load_spec
from internutopia.model.meshes.sheets import FLAT_THICKNESS
from internutopia.model.spec import Vec3

pytest.importorskip('pxr.Usd')

STRETCH = (2.0, 3.0, 0.5)
COLLIDES = '(prepend apiSchemas = ["PhysicsCollisionAPI"])'
MOVES = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysicsMassAPI"])'


def at(place: tuple[float, ...], turn: float = 0.0) -> str:
    return f"""double3 xformOp:translate = {place}
        float xformOp:rotateZ = {turn}
        uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZ"]"""


SHAPES = f"""
    def Cube "box" {COLLIDES} {{ double size = 0.4
        {at((1, 2, 3))} }}
    def Cube "turned" {COLLIDES} {{ double size = 0.4
        {at((-1, 0.5, 1), 30)} }}
    def Sphere "ball" {COLLIDES} {{ double radius = 0.3
        {at((0, 3, 1))} }}
    def Capsule "rod" {COLLIDES} {{ double radius = 0.1
        {at((3, 0, 1), 20)} }}
    def Mesh "wedge" {COLLIDES} {{
        point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
        int[] faceVertexCounts = [3, 3, 3, 3]
        int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 1, 2, 3, 0, 3, 2]
        {at((0, 0, 2), 45)} }}
    def Camera "eye" {{ {at((4, 4, 4), 10)} }}
    def Cube "loose" {MOVES} {{ double size = 0.2
        {at((2, 2, 2), 40)} }}
    def Cube "given" {MOVES} {{ double size = 0.2
        float physics:mass = 3
        point3f physics:centerOfMass = (0.1, 0.05, 0.02)
        {at((2, -2, 2))} }}
    def Cube "lid" {MOVES} {{ double size = 0.2
        {at((2, -2, 3))} }}
    def PhysicsRevoluteJoint "hinge" {{
        rel physics:body0 = </World/given>
        rel physics:body1 = </World/lid>
        uniform token physics:axis = "X"
        point3f physics:localPos0 = (0.1, 0.2, 0.5)
        point3f physics:localPos1 = (0.1, 0.2, -0.5)
    }}
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a stage of the prim `/World` with these children and gives its path."""

    def write(children: str, name: str = 'stage', header: str = 'metersPerUnit = 1', up: str = 'Z') -> Path:
        path = tmp_path / f'{name}.usda'
        children = children.replace(' }', '\n}')  # of an attribute nothing may follow in its line
        path.write_text(
            f'#usda 1.0\n(defaultPrim = "World"\n{header}\nupAxis = "{up}")\ndef Xform "World" {{\n{children}\n}}\n'
        )
        return path

    return write


def compiled(path: Path, scale: Vec3 = (1.0, 1.0, 1.0), raw_lengths: bool = False) -> mujoco.MjModel:
    return load_spec(path, LoadOptions(scale=scale, raw_lengths=raw_lengths)).compile()


@pytest.mark.parametrize('scale', [STRETCH, (2.5, 2.5, 2.5)])
def test_a_scale_is_an_xform_with_that_scale_above_the_stage(write, tmp_path, scale):
    path = write(SHAPES)
    below = path.read_text().replace(
        'def Xform "World" {',
        f'def Xform "World" {{\ndouble3 xformOp:scale = {scale}\nuniform token[] xformOpOrder = ["xformOp:scale"]',
    )
    (tmp_path / 'below.usda').write_text(below)
    one, other = compiled(path, scale), compiled(tmp_path / 'below.usda')
    assert one.names.partition(b'\0')[2] == other.names.partition(b'\0')[2]  # after that of the file
    for field in (
        *('geom_type', 'geom_pos', 'geom_quat', 'geom_size', 'mesh_vert', 'cam_pos', 'cam_quat', 'cam_fovy'),
        *('body_pos', 'body_quat', 'body_mass', 'body_inertia', 'body_ipos', 'jnt_pos', 'jnt_axis', 'jnt_range'),
    ):
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field), err_msg=field)
    box = one.geom('/World/box')
    np.testing.assert_allclose(box.pos, np.multiply((1, 2, 3), scale))
    np.testing.assert_allclose(box.size, 0.2 * np.array(scale))
    volume = 0.2**3 * np.prod(scale)
    assert one.body('/World/loose').mass == pytest.approx(1000 * volume)  # of its density
    assert one.body('/World/given').mass == pytest.approx(3)


def test_a_scale_counts_where_z_is_up(write):
    model = compiled(write('def Cube "box" { double size = 2 }', up='Y'), (1.0, 2.0, 5.0))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    corner = np.abs(data.geom_xmat[0].reshape(3, 3)) @ model.geom_size[0]
    np.testing.assert_allclose(corner, [1, 2, 5], atol=1e-9)


def test_slides_stretch_along_their_axis_and_gains_stay(write):
    def slide(axis: str) -> str:
        return f"""
    def Cube "{axis}" {MOVES} {{ double size = 0.1
        float physics:mass = 2
        float3 physics:diagonalInertia = (0.1, 0.2, 0.25) }}
    def PhysicsPrismaticJoint "slide_{axis}" (prepend apiSchemas = ["PhysicsDriveAPI:linear"]) {{
        rel physics:body1 = </World/{axis}>
        uniform token physics:axis = "{axis}"
        float physics:lowerLimit = -0.1
        float physics:upperLimit = 0.4
        float drive:linear:physics:stiffness = 50
        float drive:linear:physics:damping = 5
        float drive:linear:physics:targetPosition = 0.2
        float drive:linear:physics:maxForce = 30 }}"""

    path = write(''.join(map(slide, 'XYZ')))
    model = compiled(path, STRETCH)
    for axis, factor in zip('XYZ', STRETCH, strict=True):
        joint, actuator = model.joint(f'/World/slide_{axis}'), model.actuator(f'/World/slide_{axis}/position')
        np.testing.assert_allclose(joint.range, [-0.1 * factor, 0.4 * factor], rtol=1e-6)
        assert actuator.gainprm[0] == pytest.approx(50)
        assert actuator.biasprm[0] == pytest.approx(50 * 0.2 * factor)  # what pulls it to the stretched target
        np.testing.assert_allclose(model.jnt_actfrcrange[joint.id], [-30, 30])
    even = compiled(path, (2.0, 2.0, 2.0))
    assert sorted(even.body('/World/X').inertia) == pytest.approx([0.4, 0.8, 1.0], rel=1e-6)  # 2**2 times
    assert even.body('/World/X').mass == pytest.approx(2)


@pytest.mark.parametrize('scale', [(1.0, 1.0, 1.0), (0.01, 0.01, 0.01), STRETCH])
def test_gravity_does_not_scale(write, scale):
    scene = 'def PhysicsScene "physics" { float physics:gravityMagnitude = 162 }'  # that of the moon in cm/s2
    model = compiled(write(scene, header='metersPerUnit = 0.01'), scale)
    np.testing.assert_allclose(model.opt.gravity, [0, 0, -1.62], atol=1e-7)


@pytest.mark.parametrize(
    ('header', 'scale', 'half'),
    [
        ('metersPerUnit = 0.01', 0.5, 50.0),
        ('metersPerUnit = 1', 0.5, 50.0),
        ('', 0.01, 1.0),
        ('metersPerUnit = 0.001', 1.0, 100.0),
    ],
)
def test_raw_lengths_are_what_is_written_whatever_the_unit(write, header, scale, half):
    """Densities and gravity are per metre then, too: 200 units are 200 m before they are scaled."""
    text = f"""def Cube "box" {MOVES} {{ double size = 200
        float physics:density = 30 }}
        def PhysicsScene "physics" {{ float physics:gravityMagnitude = 981 }}"""
    model = compiled(write(text, header=header), (scale,) * 3, raw_lengths=True)
    np.testing.assert_allclose(model.geom('/World/box').size, half)
    assert model.body('/World/box').mass == pytest.approx(30 * (2 * half) ** 3)
    np.testing.assert_allclose(model.opt.gravity, [0, 0, -9.81])


def test_concave_meshes_are_cut_in_metres_whatever_they_are_written_in(write, room):
    """Walls in centimetres, which a scale brings down to metres, are the walls in metres."""
    pytest.importorskip('coacd')
    points, faces = room

    def parts(unit: float) -> list[Any]:
        written = ', '.join(map(str, (points * unit).round(6).tolist())).replace('[', '(').replace(']', ')')
        mesh = f"""def Mesh "walls" {COLLIDES} {{
        point3f[] points = [{written}]
        int[] faceVertexCounts = {[3] * len(faces)}
        int[] faceVertexIndices = {faces.ravel().tolist()} }}"""
        scale = 1 / unit
        model = compiled(write(mesh, name=f'walls_{unit:g}'), (scale, scale, scale))
        names = (model.geom(i).name for i in range(model.ngeom))
        return [model.geom(name) for name in names if name.startswith('/World/walls/part_')]

    walls, same = parts(1.0), parts(100.0)
    assert 4 < len(walls) < 12 and len(same) == len(walls)
    for one, other in zip(walls, same, strict=True):
        np.testing.assert_allclose(other.pos, one.pos, atol=1e-4)


@pytest.mark.parametrize('scale', [0.1, 1.0, 20.0])
def test_what_is_flat_gets_a_thickness_in_proportion_up_to_one_in_metres(write, scale):
    sheet = f"""def Mesh "sheet" {COLLIDES} {{
        point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
        int[] faceVertexCounts = [4]
        int[] faceVertexIndices = [0, 1, 2, 3] }}"""
    model = compiled(write(sheet), (scale,) * 3)
    (collider,) = np.flatnonzero(model.geom_contype)
    extents = sorted(2 * model.geom_aabb[collider, 3:])
    assert extents == pytest.approx(sorted([scale, scale, FLAT_THICKNESS * min(1.0, scale)]), rel=1e-5)


def test_mjcf_cannot_be_stretched(write_model):
    path = Path(write_model('thing', '<worldbody><geom size="0.1"/></worldbody>'))
    with pytest.raises(ValueError, match=r'thing.xml: scale \(1, 2, 1\) must be the same .*files of MJCF and URDF'):
        load_spec(path, LoadOptions(scale=(1, 2, 1)))
