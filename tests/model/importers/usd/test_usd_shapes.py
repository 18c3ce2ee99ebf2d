"""Shapes of USD files under transforms, against those of USD itself."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from usd_stages import (
    CORNERS,
    GEOM,
    POSITION_TOLERANCE,
    add_cube_mesh,
    add_mesh,
    assert_same_points,
    kind,
    move,
    new_stage,
    placed,
    saved,
    world_points,
)

UsdGeom, UsdPhysics = (pytest.importorskip(f'pxr.{name}') for name in ('UsdGeom', 'UsdPhysics'))


def test_every_primitive_has_its_size_axis_and_name(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    UsdGeom.Cube.Define(stage, '/World/cube').CreateSizeAttr(0.4)
    UsdGeom.Sphere.Define(stage, '/World/sphere').CreateRadiusAttr(0.3)
    for schema, axis in (UsdGeom.Cylinder, 'X'), (UsdGeom.Capsule, 'Y'), (UsdGeom.Cone, 'Z'):
        prim = schema.Define(stage, f'/World/{schema.__name__}')
        prim.CreateRadiusAttr(0.2)
        prim.CreateHeightAttr(0.6)
        prim.CreateAxisAttr(axis)
    plane = UsdGeom.Plane.Define(stage, '/World/plane')
    plane.CreateWidthAttr(8)
    plane.CreateLengthAttr(6)
    model = saved(stage)
    expected = {
        'cube': (GEOM.mjGEOM_BOX, [0.2, 0.2, 0.2], [0, 0, 1]),
        'sphere': (GEOM.mjGEOM_SPHERE, [0.3, 0, 0], [0, 0, 1]),
        'Cylinder': (GEOM.mjGEOM_CYLINDER, [0.2, 0.3, 0], [1, 0, 0]),
        'Capsule': (GEOM.mjGEOM_CAPSULE, [0.2, 0.3, 0], [0, 1, 0]),
        'plane': (GEOM.mjGEOM_PLANE, [4, 3, 1], [0, 0, 1]),
    }
    for name, (shape, size, axis) in expected.items():
        assert kind(model, f'/World/{name}') == shape
        np.testing.assert_allclose(model.geom(f'/World/{name}').size, size)
        np.testing.assert_allclose(placed(model).geom(f'/World/{name}').xmat.reshape(3, 3)[:, 2], axis, atol=1e-12)
    cone = world_points(model, '/World/Cone')
    np.testing.assert_allclose(cone[cone[:, 2].argmax()], [0, 0, 0.3], atol=POSITION_TOLERANCE)
    base = cone[cone[:, 2] < 0]
    np.testing.assert_allclose(np.linalg.norm(base[:, :2], axis=1), 0.2, atol=POSITION_TOLERANCE)
    np.testing.assert_allclose(base[:, 2], -0.3, atol=POSITION_TOLERANCE)


triples = st.tuples
placements = triples(
    triples(*[st.floats(-10, 10)] * 3), triples(*[st.floats(-180, 180)] * 3), triples(*[st.floats(0.2, 3)] * 3)
)


@pytest.mark.slow
@given(
    outer=placements,
    inner=placements,
    mirror=st.sampled_from([-1.0, 1.0]),
    up=st.sampled_from(['Y', 'Z']),
    unit=st.sampled_from([1.0, 0.01]),
)
@settings(max_examples=25, deadline=None)
def test_nested_transforms_with_shear_and_mirrors_agree_with_usd(tmp_path_factory, outer, inner, mirror, up, unit):
    stage = new_stage(tmp_path_factory.mktemp('usd') / 'a.usda', up=up, unit=unit)
    where, turn, scale = outer
    move(UsdGeom.Xform.Define(stage, '/World'), where, turn, (mirror * scale[0], *scale[1:]))
    mesh = move(add_cube_mesh(stage, '/World/mesh'), *inner)
    move(UsdGeom.Cube.Define(stage, '/World/cube'), *inner)
    move(UsdGeom.Sphere.Define(stage, '/World/ball'), *inner)
    model = saved(stage)

    to_world = np.array(UsdGeom.XformCache().GetLocalToWorldTransform(mesh.GetPrim())) * unit  # acts on rows
    if up == 'Y':
        to_world[:, :3] = to_world[:, [0, 2, 1]] * [1, -1, 1]
    corners = CORNERS @ to_world[:3, :3] + to_world[3, :3]
    assert_same_points(world_points(model, '/World/mesh'), corners)
    assert_same_points(world_points(model, '/World/cube'), corners)
    # the unit sphere becomes the ellipsoid of all x with x' (A A')^-1 x = 1
    frame, size = placed(model).geom('/World/ball'), model.geom('/World/ball').size
    axes = frame.xmat.reshape(3, 3) * np.where(size > 0, size, size[0])
    gram = to_world[:3, :3].T @ to_world[:3, :3]
    np.testing.assert_allclose(axes @ axes.T, gram, rtol=0, atol=1e-4 * gram.max())
    np.testing.assert_allclose(frame.xpos, to_world[3, :3], atol=1e-6)


def test_an_uneven_scale_keeps_what_is_still_a_primitive(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    cases = {
        (UsdGeom.Cube, (1, 2, 3)): GEOM.mjGEOM_BOX,
        (UsdGeom.Sphere, (2, 2, 2)): GEOM.mjGEOM_SPHERE,
        (UsdGeom.Sphere, (1, 2, 3)): GEOM.mjGEOM_ELLIPSOID,
        (UsdGeom.Cylinder, (2, 2, 3)): GEOM.mjGEOM_CYLINDER,
        (UsdGeom.Cylinder, (1, 2, 3)): GEOM.mjGEOM_MESH,
        (UsdGeom.Capsule, (2, 2, 2)): GEOM.mjGEOM_CAPSULE,
        (UsdGeom.Capsule, (2, 2, 3)): GEOM.mjGEOM_MESH,
    }
    paths = [f'/p{i}' for i in range(len(cases))]
    for path, (schema, scale) in zip(paths, cases, strict=True):
        move(schema.Define(stage, path), scale=scale)
    model = saved(stage)
    assert [kind(model, path) for path in paths] == list(cases.values())
    np.testing.assert_allclose(model.geom('/p0').size, [1, 2, 3])
    np.testing.assert_allclose(model.geom('/p3').size, [2, 3, 0])
    np.testing.assert_allclose(np.ptp(world_points(model, '/p4'), axis=0), [2, 4, 6], atol=1e-5)
    # radius 0.5 and height 1: with its caps 1 wide and 2 high before scaling
    np.testing.assert_allclose(np.ptp(world_points(model, '/p6'), axis=0), [2, 2, 6], atol=1e-5)


def test_units_and_up_axis(tmp_path):
    stage = new_stage(tmp_path / 'a.usda', up='Y', unit=0.01)
    move(UsdGeom.Cube.Define(stage, '/box'), where=(100, 200, 300), scale=(50, 100, 150))
    model = saved(stage)
    np.testing.assert_allclose(placed(model).geom('/box').xpos, [1, -3, 2])
    np.testing.assert_allclose(np.ptp(world_points(model, '/box'), axis=0), [1, 3, 2])


def test_a_plane_is_as_wide_as_it_says_along_any_axis(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    for axis in 'XYZ':
        plane = UsdGeom.Plane.Define(stage, f'/{axis}')
        plane.CreateAxisAttr(axis)
        plane.CreateWidthAttr(8)
        plane.CreateLengthAttr(6)
        UsdPhysics.CollisionAPI.Apply(plane.GetPrim())
    model = saved(stage)
    for axis, extents in ('X', [0, 6, 8]), ('Y', [8, 0, 6]), ('Z', [8, 6, 0]):
        x, y, _ = model.geom(f'/{axis}').size
        frame = placed(model).geom(f'/{axis}').xmat.reshape(3, 3)
        np.testing.assert_allclose(2 * np.abs(frame[:, :2]) @ [x, y], extents, atol=1e-9)
        np.testing.assert_allclose(frame[:, 2], np.eye(3)['XYZ'.index(axis)], atol=1e-9)


def test_only_a_ground_plane_is_infinite_unless_the_stage_says_so(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    UsdGeom.Plane.Define(stage, '/ground')
    picture = UsdGeom.Plane.Define(stage, '/picture')
    picture.CreateAxisAttr('X')
    model = saved(stage)
    assert kind(model, '/ground') == GEOM.mjGEOM_PLANE
    assert kind(model, '/picture') == GEOM.mjGEOM_BOX
    assert world_points(model, '/picture')[:, 0].max() == pytest.approx(0)  # the front stays where it is


def test_a_left_handed_or_mirrored_mesh_has_its_faces_outside(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    add_cube_mesh(stage, '/right')
    move(add_cube_mesh(stage, '/mirrored'), scale=(-1, 1, 1))
    add_cube_mesh(stage, '/left').CreateOrientationAttr('leftHanded')
    for prim in stage.Traverse():
        UsdPhysics.CollisionAPI.Apply(prim).CreateCollisionEnabledAttr(False)  # keeps the faces as they are
    model = saved(stage)

    def outward(name: str) -> float:
        mesh = model.mesh(int(model.geom(name).dataid[0]))
        vertices = model.mesh_vert[int(mesh.vertadr[0]) :][: int(mesh.vertnum[0])]
        triangles = vertices[model.mesh_face[int(mesh.faceadr[0]) :][: int(mesh.facenum[0])]]
        return float(np.einsum('ij,ij->', triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2]))) / 6

    right = outward('/right')
    assert abs(right) == pytest.approx(8, abs=1e-4)
    assert outward('/mirrored') == pytest.approx(right, abs=1e-4)
    assert outward('/left') == pytest.approx(-right, abs=1e-4)


def test_a_flat_mesh_collides_on_its_front(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    add_mesh(stage, '/floor', [(-1, -1, 0), (-1, 1, 0), (1, 1, 0), (1, -1, 0)], [[0, 1, 2, 3]])  # faces down
    add_mesh(stage, '/triangle', [(3, 0, 0), (4, 0, 0), (3, 1, 0)], [[0, 1, 2]])
    ball = move(UsdGeom.Sphere.Define(stage, '/ball'), where=(0.3, 0.2, 0.1))
    ball.CreateRadiusAttr(0.1)
    UsdPhysics.RigidBodyAPI.Apply(ball.GetPrim())
    model = saved(stage)
    assert world_points(model, '/floor')[:, 2].max() == pytest.approx(0, abs=1e-6)
    data = placed(model)
    mujoco.mj_step(model, data, 500)
    np.testing.assert_allclose(data.body('/ball').xpos, [0.3, 0.2, 0.1], atol=2e-3)
