from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internutopia.core.model.importers.load import content_key, load_spec

# pxr is imported where used in the package, so that importing a module does not load it; a test may load it at once
Gf, Usd, UsdGeom, UsdPhysics, UsdShade, Sdf = (
    pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'Usd', 'UsdGeom', 'UsdPhysics', 'UsdShade', 'Sdf')
)

POSITION_TOLERANCE = 1e-5  # [m]; meshes are in single precision
GEOM = mujoco.mjtGeom
CORNERS = np.stack(np.meshgrid([-1, 1], [-1, 1], [-1, 1]), axis=-1).reshape(-1, 3).astype(float)


def new_stage(path: Path, *, up: str = 'Z', unit: float = 1.0) -> Any:
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageUpAxis(stage, up)
    UsdGeom.SetStageMetersPerUnit(stage, unit)
    return stage


def move(prim: Any, where: Any = (0, 0, 0), turn: Any = (0, 0, 0), scale: Any = (1, 1, 1)) -> Any:
    UsdGeom.Xformable(prim).AddTranslateOp().Set(Gf.Vec3d(*where))
    UsdGeom.Xformable(prim).AddRotateXYZOp().Set(Gf.Vec3f(*turn))
    UsdGeom.Xformable(prim).AddScaleOp().Set(Gf.Vec3f(*scale))
    return prim


def add_mesh(stage: Any, path: str, points: Any, faces: list[list[int]]) -> Any:
    mesh = UsdGeom.Mesh.Define(stage, path)
    mesh.CreatePointsAttr([Gf.Vec3f(*map(float, point)) for point in points])
    mesh.CreateFaceVertexCountsAttr([len(face) for face in faces])
    mesh.CreateFaceVertexIndicesAttr([corner for face in faces for corner in face])
    return mesh


def add_cube_mesh(stage: Any, path: str) -> Any:
    faces = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return add_mesh(stage, path, CORNERS, faces)


def saved(stage: Any) -> mujoco.MjModel:
    """Save a stage and compile what the importer makes of it."""
    stage.Save()
    return load_spec(Path(stage.GetRootLayer().realPath)).compile()


def placed(model: mujoco.MjModel) -> mujoco.MjData:
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return data


def world_points(model: mujoco.MjModel, name: str) -> np.ndarray:
    """Corners of a box geom or vertices of a mesh geom, in the world."""
    frame, geom = placed(model).geom(name), model.geom(name)
    points = CORNERS * geom.size
    if geom.type == GEOM.mjGEOM_MESH:
        mesh = model.mesh(int(geom.dataid[0]))
        points = model.mesh_vert[int(mesh.vertadr[0]) : int(mesh.vertadr[0]) + int(mesh.vertnum[0])]
    return points @ frame.xmat.reshape(3, 3).T + frame.xpos


def assert_same_points(found: np.ndarray, expected: np.ndarray) -> None:
    """Two point sets are the same, in any order."""
    distances = np.linalg.norm(found[:, None] - expected[None], axis=-1)
    tolerance = POSITION_TOLERANCE * (1 + np.abs(expected).max())
    assert max(distances.min(axis=0).max(), distances.min(axis=1).max()) < tolerance


def kind(model: mujoco.MjModel, name: str) -> mujoco.mjtGeom:
    return GEOM(int(model.geom(name).type[0]))


# Shapes and transforms


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


# What is traversed


def test_references_payloads_and_instances(tmp_path):
    part = new_stage(tmp_path / 'part.usda')
    part.SetDefaultPrim(UsdGeom.Xform.Define(part, '/Part').GetPrim())
    add_cube_mesh(part, '/Part/mesh')
    part.Save()
    stage = new_stage(tmp_path / 'a.usda')
    for i, add in enumerate(('AddReference', 'AddPayload', 'AddReference', 'AddReference')):
        prim = UsdGeom.Xform.Define(stage, f'/World/part{i}').GetPrim()
        getattr(getattr(prim, {'AddReference': 'GetReferences', 'AddPayload': 'GetPayloads'}[add])(), add)('part.usda')
        prim.SetInstanceable(i >= 2)
        move(prim, where=(3 * i, 0, 0), turn=(0, 0, 30 * i))
    model = saved(stage)
    for i in range(4):
        np.testing.assert_allclose(placed(model).geom(f'/World/part{i}/mesh').xpos, [3 * i, 0, 0], atol=1e-6)
    assert model.nmesh == 1  # equal meshes are stored once


def test_what_does_not_show_is_left_out(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    for name in 'shown', 'invisible', 'inactive', 'guide', 'flattened':
        UsdGeom.Cube.Define(stage, f'/{name}')
    UsdGeom.Imageable(stage.GetPrimAtPath('/invisible')).MakeInvisible()
    UsdGeom.Imageable(stage.GetPrimAtPath('/guide')).CreatePurposeAttr('guide')
    stage.GetPrimAtPath('/inactive').SetActive(False)
    move(stage.GetPrimAtPath('/flattened'), scale=(1, 0, 1))
    stage.OverridePrim('/never_defined')
    model = saved(stage)
    assert [model.geom(i).name for i in range(model.ngeom)] == ['/shown']


def test_colliders_are_the_prims_that_say_so_if_any_does(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    for name in 'decoration', 'wall', 'hidden', 'off', 'group/inside':
        UsdGeom.Cube.Define(stage, f'/{name}')
    for name in 'wall', 'hidden', 'off', 'group':
        UsdPhysics.CollisionAPI.Apply(stage.GetPrimAtPath(f'/{name}'))
    UsdPhysics.CollisionAPI(stage.GetPrimAtPath('/off')).CreateCollisionEnabledAttr(False)
    UsdGeom.Imageable(stage.GetPrimAtPath('/hidden')).MakeInvisible()
    model = saved(stage)
    colliding = {model.geom(i).name: bool(model.geom_contype[i]) for i in range(model.ngeom)}
    assert colliding == {'/decoration': False, '/wall': True, '/hidden': True, '/off': False, '/group/inside': True}
    groups = {name: int(model.geom(name).group[0]) for name in colliding}
    assert groups == {'/decoration': 2, '/wall': 0, '/hidden': 3, '/off': 2, '/group/inside': 0}


def test_unsupported_geometry_is_named_once(tmp_path, caplog):
    stage = new_stage(tmp_path / 'a.usda')
    UsdGeom.Cube.Define(stage, '/cube')
    for i in range(3):
        UsdGeom.BasisCurves.Define(stage, f'/curve{i}')
    UsdGeom.Points.Define(stage, '/dust')
    with caplog.at_level(logging.WARNING, 'internutopia'):
        model = saved(stage)
    assert model.ngeom == 1
    assert [record.getMessage() for record in caplog.records] == [
        f'{tmp_path / "a.usda"}: not all of it is as in the file\n'
        '- BasisCurves is left out, there is no such shape: /curve0, /curve1, /curve2\n'
        '- Points is left out, there is no such shape: /dust'
    ]


# Colours and lights


def test_colours_come_from_the_material_then_the_prim_then_its_parent(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    parent = UsdGeom.Xform.Define(stage, '/World')
    for name in 'material', 'own', 'inherited', 'texture':
        UsdGeom.Cube.Define(stage, f'/World/{name}')
    UsdGeom.PrimvarsAPI(parent).CreatePrimvar('displayColor', Sdf.ValueTypeNames.Color3fArray).Set([(0.1, 0.2, 0.3)])
    own = UsdGeom.Gprim(stage.GetPrimAtPath('/World/own'))
    own.CreateDisplayColorAttr([(1, 0.5, 0)])
    own.CreateDisplayOpacityAttr([0.5])
    for name in 'material', 'texture':
        material = UsdShade.Material.Define(stage, f'/Looks/{name}')
        shader = UsdShade.Shader.Define(stage, f'/Looks/{name}/shader')
        shader.CreateIdAttr('UsdPreviewSurface')
        shader.CreateInput('diffuseColor', Sdf.ValueTypeNames.Color3f).Set((0, 0.25, 0.75))
        material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), 'surface')
        UsdShade.MaterialBindingAPI.Apply(stage.GetPrimAtPath(f'/World/{name}')).Bind(material)
    reader = UsdShade.Shader.Define(stage, '/Looks/texture/reader')
    shader.GetInput('diffuseColor').ConnectToSource(reader.ConnectableAPI(), 'rgb')
    model = saved(stage)
    expected = {
        'material': [0, 0.25, 0.75, 1],
        'own': [1, 0.5, 0, 0.5],
        'inherited': [0.1, 0.2, 0.3, 1],
        'texture': [0.1, 0.2, 0.3, 1],  # not read; the display colour stands in
    }
    for name, rgba in expected.items():
        np.testing.assert_allclose(model.geom(f'/World/{name}').rgba, rgba, atol=1e-6)


def test_a_distant_light_shines_along_its_minus_z_axis(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    move(stage.DefinePrim('/sun', 'DistantLight'), turn=(90, 0, 0))
    stage.DefinePrim('/sky', 'DomeLight')
    model = saved(stage)
    np.testing.assert_allclose(placed(model).light_xdir[0], [0, 1, 0], atol=1e-9)
    assert model.tex_type[0] == mujoco.mjtTexture.mjTEXTURE_SKYBOX


# Rigid bodies


def rigid(prim: Any, mass: float | None = None, density: float | None = None) -> None:
    UsdPhysics.RigidBodyAPI.Apply(prim.GetPrim())
    if mass is not None:
        UsdPhysics.MassAPI.Apply(prim.GetPrim()).CreateMassAttr(mass)
    if density is not None:
        UsdPhysics.MassAPI.Apply(prim.GetPrim()).CreateDensityAttr(density)


def test_rigid_bodies_are_free_and_weigh_what_they_say(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    move(UsdGeom.Xform.Define(stage, '/World'), where=(1, 2, 3), turn=(0, 0, 90))
    rigid(move(UsdGeom.Cube.Define(stage, '/World/default'), where=(1, 0, 0)))
    rigid(UsdGeom.Cube.Define(stage, '/World/dense'), density=500)
    rigid(UsdGeom.Xform.Define(stage, '/World/table'), mass=20)
    for name in 'top', 'leg':
        UsdGeom.Cube.Define(stage, f'/World/table/{name}')
    rigid(UsdGeom.Cube.Define(stage, '/World/still'))
    UsdPhysics.RigidBodyAPI(stage.GetPrimAtPath('/World/still')).CreateKinematicEnabledAttr(True)
    rigid(UsdGeom.Cube.Define(stage, '/World/off'))
    UsdPhysics.RigidBodyAPI(stage.GetPrimAtPath('/World/off')).CreateRigidBodyEnabledAttr(False)
    model = saved(stage)
    masses = {model.body(i).name: float(model.body_mass[i]) for i in range(1, model.nbody)}
    assert masses == pytest.approx(
        {'/World/default': 8000, '/World/dense': 4000, '/World/table': 20, '/World/still': 8000}
    )
    free = {model.body(int(model.jnt_bodyid[j])).name for j in range(model.njnt)}
    assert free == {'/World/default', '/World/dense', '/World/table'}
    body = placed(model).body('/World/default')
    np.testing.assert_allclose(body.xpos, [1, 3, 3], atol=1e-9)
    np.testing.assert_allclose(body.xmat.reshape(3, 3)[:, 0], [0, 1, 0], atol=1e-7)
    assert model.geom('/World/off').bodyid == 0


def test_masses_and_densities_are_in_the_units_of_the_stage(tmp_path):
    stage = new_stage(tmp_path / 'a.usda', unit=0.01)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 0.001)
    for name, kwargs in ('gram', {'mass': 5}), ('dense', {'density': 2}), ('water', {}):
        cube = UsdGeom.Cube.Define(stage, f'/{name}')
        cube.CreateSizeAttr(10)
        rigid(cube, **kwargs)
    model = saved(stage)
    for name, mass in ('gram', 0.005), ('dense', 2.0), ('water', 1.0):
        assert float(model.body(f'/{name}').mass[0]) == pytest.approx(mass)


def test_visual_geometry_adds_no_mass_and_a_moving_sheet_is_fine(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    rigid(UsdGeom.Xform.Define(stage, '/cart'))
    UsdPhysics.CollisionAPI.Apply(UsdGeom.Cube.Define(stage, '/cart/chassis').GetPrim())
    UsdGeom.Sphere.Define(stage, '/cart/ornament')
    UsdGeom.Plane.Define(stage, '/cart/sign')
    assert float(saved(stage).body('/cart').mass[0]) == pytest.approx(8000)


def test_a_rigid_body_is_at_rest_on_the_ground_after_attaching(tmp_path):
    stage = new_stage(tmp_path / 'a.usda', up='Y', unit=0.01)
    UsdGeom.Plane.Define(stage, '/ground').CreateAxisAttr('Y')
    box = move(UsdGeom.Cube.Define(stage, '/box'), where=(30, 20, 0), turn=(0, 40, 0), scale=(20, 20, 10))
    rigid(box, mass=2)
    stage.Save()
    parent = mujoco.MjSpec()
    parent.attach(load_spec(tmp_path / 'a.usda'), frame=parent.worldbody.add_frame(), prefix='scene/')
    model = parent.compile()
    data = placed(model)
    start = data.body('scene//box').xpos.copy()
    np.testing.assert_allclose(start, [0.3, 0, 0.2], atol=1e-9)
    mujoco.mj_step(model, data, 500)
    np.testing.assert_allclose(data.body('scene//box').xpos, start, atol=1e-3)
    assert float(model.body('scene//box').mass[0]) == pytest.approx(2)


# Warnings and errors


def test_a_concave_collider_is_reported_once_and_a_convex_one_is_not(tmp_path, caplog):
    stage = new_stage(tmp_path / 'a.usda')
    outline = [(0, 0), (2, 0), (2, 0.2), (0.2, 0.2), (0.2, 2), (0, 2)]
    points = [(x, y, z) for z in (0, 1) for x, y in outline]
    sides = [[i, (i + 1) % 6, 6 + (i + 1) % 6, 6 + i] for i in range(6)]
    # the top and bottom in convex pieces: fans around a corner would fold over
    caps = [[3, 2, 1, 0], [5, 4, 3, 0], [6, 7, 8, 9], [6, 9, 10, 11]]
    rigid(add_mesh(stage, '/corner', points, sides + caps))
    rigid(add_cube_mesh(stage, '/cube'))
    with caplog.at_level(logging.WARNING, 'internutopia'):
        saved(stage)
    (message,) = [record.getMessage() for record in caplog.records]
    # the hull: 2 x 2 less the triangle that is cut off between (2, 0.2) and (0.2, 2)
    ratio = (4 - 1.8**2 / 2) / (0.2 * 2 + 0.2 * 1.8)
    assert '/corner' in message and f'{ratio:.3g} times' in message


@pytest.mark.parametrize(
    ('points', 'faces', 'message'),
    [
        (CORNERS, [[0, 1, 8]], r'/World/bad: faceVertexIndices must be within 0\.\.7'),
        ([(0, 0, 0), (1, 0, 0), (0, float('nan'), 0)], [[0, 1, 2]], '/World/bad: points must be finite'),
    ],
)
def test_a_broken_mesh_is_named(tmp_path, points, faces, message):
    stage = new_stage(tmp_path / 'a.usda')
    add_mesh(stage, '/World/bad', points, faces)
    with pytest.raises(ValueError, match=message) as error:
        saved(stage)
    assert str(tmp_path / 'a.usda') in str(error.value)


def test_face_counts_that_do_not_fit_are_an_error(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    add_cube_mesh(stage, '/bad').CreateFaceVertexCountsAttr([4] * 5)
    with pytest.raises(ValueError, match='/bad: faceVertexCounts sum up to 20, but there are 24'):
        saved(stage)


def test_a_broken_file_names_file_and_line(tmp_path):
    path = tmp_path / 'broken.usda'
    path.write_text('#usda 1.0\ndef Cube "a" {\n    double size = "x"\n}\n')
    with pytest.raises(ValueError, match=r'broken\.usda:3:'):
        load_spec(path)
    for suffix in '.usd', '.usdc', '.usdz':
        path = tmp_path / f'broken{suffix}'
        path.write_bytes(b'nonsense')
        with pytest.raises(ValueError, match=f'broken{suffix}'):
            load_spec(path)


def test_binary_and_packaged_files_give_the_same_model(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    add_cube_mesh(stage, '/World/mesh')
    model = saved(stage)
    UsdUtils = pytest.importorskip('pxr.UsdUtils')
    stage.Export(str(tmp_path / 'a.usdc'))
    UsdUtils.CreateNewUsdzPackage(str(tmp_path / 'a.usdc'), str(tmp_path / 'a.usdz'))
    for suffix in 'usdc', 'usdz':
        other = load_spec(tmp_path / f'a.{suffix}').compile()
        np.testing.assert_array_equal(other.mesh_vert, model.mesh_vert)


# Content key


def test_the_content_key_follows_every_layer(tmp_path):
    part = new_stage(tmp_path / 'part.usda')
    part.SetDefaultPrim(UsdGeom.Cube.Define(part, '/Part').GetPrim())
    part.Save()
    stage = new_stage(tmp_path / 'a.usda')
    UsdGeom.Xform.Define(stage, '/World').GetPrim().GetReferences().AddReference('part.usda')
    stage.Save()
    before = content_key(tmp_path / 'a.usda')
    assert content_key(tmp_path / 'a.usda') == before
    UsdGeom.Cube(part.GetPrimAtPath('/Part')).CreateSizeAttr(0.123)
    part.Save()
    assert content_key(tmp_path / 'a.usda') != before


def test_a_packaged_file_depends_on_the_package(tmp_path):
    UsdUtils = pytest.importorskip('pxr.UsdUtils')
    stage = new_stage(tmp_path / 'a.usdc')
    UsdGeom.Cube.Define(stage, '/World')
    stage.Save()
    UsdUtils.CreateNewUsdzPackage(str(tmp_path / 'a.usdc'), str(tmp_path / 'b.usdz'))
    assert content_key(tmp_path / 'b.usdz') != content_key(tmp_path / 'a.usdc')
