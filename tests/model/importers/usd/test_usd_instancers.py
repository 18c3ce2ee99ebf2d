"""PointInstancers, and skinned meshes: what is composed of other prims and has to be worked out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.importers import usd

Gf, Sdf, UsdGeom, UsdPhysics, UsdSkel = (
    pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'Sdf', 'UsdGeom', 'UsdPhysics', 'UsdSkel')
)

TOLERANCE = 1e-3  # orientations of instances are in half precision
QUARTER = Gf.Quath(0.5**0.5, 0, 0, 0.5**0.5)  # about z
STILL = Gf.Quath(1, 0, 0, 0)


def read(stage: Any) -> tuple[mujoco.MjModel, mujoco.MjData, list[str]]:
    stage.Save()
    spec, warnings = usd.load_with_warnings(Path(stage.GetRootLayer().realPath))
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data, warnings


def add_instancer(stage: Any, path: str, prototypes: list[str], indices: list[int], positions: Any) -> Any:
    instancer = UsdGeom.PointInstancer.Define(stage, path)
    instancer.CreatePrototypesRel().SetTargets(prototypes)
    instancer.CreateProtoIndicesAttr(indices)
    instancer.CreatePositionsAttr([Gf.Vec3f(*map(float, position)) for position in positions])
    return instancer


def geom_names(model: mujoco.MjModel) -> list[str]:
    return [model.geom(i).name for i in range(model.ngeom)]


def test_instances_stand_where_the_instancer_puts_them(stage):
    UsdGeom.Xformable(UsdGeom.Xform.Define(stage, '/wood')).AddTranslateOp().Set((0, 0, 5))
    trees = add_instancer(stage, '/wood/trees', ['/wood/trees/tree'], [0, 0], [(1, 0, 0), (2, 0, 0)])
    trees.CreateOrientationsAttr([STILL, QUARTER])
    trees.CreateScalesAttr([(1, 1, 1), (2, 2, 4)])
    UsdGeom.Xform.Define(stage, '/wood/trees/tree')
    trunk = UsdGeom.Cube.Define(stage, '/wood/trees/tree/trunk')
    trunk.CreateSizeAttr(0.2)
    UsdGeom.Xformable(trunk).AddTranslateOp().Set((1, 0, 0))
    model, data, warnings = read(stage)
    assert geom_names(model) == [f'/wood/trees/instance_{i}/tree/trunk' for i in range(2)] and not warnings
    np.testing.assert_allclose(data.geom_xpos, [[2, 0, 5], [2, 2, 5]], atol=TOLERANCE)
    np.testing.assert_allclose(sorted(model.geom_size[1]), [0.2, 0.2, 0.4], atol=TOLERANCE)


def test_prototypes_have_their_own_transform_and_may_be_anywhere(stage):
    stage.OverridePrim('/prototypes')
    pebble = UsdGeom.Sphere.Define(stage, '/prototypes/pebble')
    pebble.CreateRadiusAttr(0.1)
    UsdGeom.Xformable(pebble).AddTranslateOp().Set((0, 0, 0.5))
    stage.GetPrimAtPath('/prototypes').SetSpecifier(Sdf.SpecifierOver)
    add_instancer(stage, '/beach', ['/prototypes/pebble'], [0], [(3, 0, 0)])
    model, data, _ = read(stage)
    assert geom_names(model) == ['/beach/instance_0/pebble']
    np.testing.assert_allclose(data.geom_xpos, [[3, 0, 0.5]], atol=TOLERANCE)


def test_invisible_and_inactive_instances_are_left_out(stage):
    grass = add_instancer(stage, '/grass', ['/grass/blade'], [0] * 4, [(i, 0, 0) for i in range(4)])
    grass.CreateIdsAttr([10, 11, 12, 13])
    grass.CreateInvisibleIdsAttr([11])
    grass.DeactivateId(13)
    UsdGeom.Cube.Define(stage, '/grass/blade')
    model, _, _ = read(stage)
    assert geom_names(model) == ['/grass/instance_0/blade', '/grass/instance_2/blade']


def test_instancers_within_prototypes_and_instances_are_expanded(stage):
    UsdGeom.Xform.Define(stage, '/asset')
    add_instancer(stage, '/asset/rows', ['/asset/rows/row'], [0, 0], [(0, 0, 0), (0, 10, 0)])
    add_instancer(stage, '/asset/rows/row', ['/asset/rows/row/plant'], [0, 0, 0], [(i, 0, 0) for i in range(3)])
    UsdGeom.Sphere.Define(stage, '/asset/rows/row/plant').CreateRadiusAttr(0.1)
    for i in range(2):
        field = UsdGeom.Xform.Define(stage, f'/field{i}')
        UsdGeom.Xformable(field).AddTranslateOp().Set((0, 0, i))
        field.GetPrim().GetReferences().AddInternalReference('/asset')
        field.GetPrim().SetInstanceable(True)
    stage.GetPrimAtPath('/asset').SetSpecifier(Sdf.SpecifierClass)
    model, data, _ = read(stage)
    expected = [(x, y, z) for z in range(2) for y in (0, 10) for x in range(3)]
    np.testing.assert_allclose(data.geom_xpos, expected, atol=TOLERANCE)
    assert '/field1/rows/instance_1/row/instance_2/plant' in geom_names(model)


def test_bodies_and_colours_of_instances(stage):
    boxes = add_instancer(stage, '/boxes', ['/boxes/box'], [0, 0], [(0, 0, 1), (0, 0, 3)])
    colours = UsdGeom.PrimvarsAPI(boxes).CreatePrimvar('displayColor', Sdf.ValueTypeNames.Color3fArray, 'vertex')
    colours.Set([(1, 0, 0), (0, 1, 0)])
    box = UsdGeom.Cube.Define(stage, '/boxes/box')
    UsdPhysics.RigidBodyAPI.Apply(box.GetPrim())
    UsdPhysics.MassAPI.Apply(box.GetPrim()).CreateMassAttr(2)
    model, data, _ = read(stage)
    np.testing.assert_allclose(model.body_mass[1:], 2)
    np.testing.assert_allclose(data.xpos[1:, 2], [1, 3])
    np.testing.assert_allclose(model.geom_rgba[:, :3], [[1, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize(
    ('indices', 'positions', 'warning'),
    [
        ([0, 0, 0], [(0, 0, 0)], 'left out: positions, orientations, scales and ids must be as many as protoIndices'),
        ([0], [(np.nan, 0, 0)], 'left out: positions, orientations and scales must be finite'),
        ([0, 7], [(0, 0, 0), (1, 0, 0)], 'instances of prototypes that do not exist are left out'),
    ],
)
def test_a_wrong_instancer_costs_its_instances(stage, indices, positions, warning):
    UsdGeom.Cube.Define(stage, '/floor')
    add_instancer(stage, '/trees', ['/trees/tree'], indices, positions)
    UsdGeom.Cube.Define(stage, '/trees/tree')
    model, _, warnings = read(stage)
    assert '/floor' in geom_names(model)
    assert f'{warning}: /trees' in warnings


def add_arm(stage: Any, path: str) -> None:
    """A bar from z = 0 to z = 2 with a joint in its middle, bent by 90 degrees about x at rest."""
    root = UsdSkel.Root.Define(stage, path)
    UsdGeom.Xformable(root).AddTranslateOp().Set((0, 0, 1))
    skeleton = UsdSkel.Skeleton.Define(stage, f'{path}/skeleton')
    straight, bent = Gf.Matrix4d(1).SetTranslate((0, 0, 1)), Gf.Matrix4d(Gf.Rotation((1, 0, 0), 90), (0, 0, 1))
    skeleton.CreateJointsAttr(['shoulder', 'shoulder/elbow'])
    skeleton.CreateBindTransformsAttr([Gf.Matrix4d(1), straight])
    skeleton.CreateRestTransformsAttr([Gf.Matrix4d(1), bent])
    square = ((-0.1, -0.1), (0.1, -0.1), (0.1, 0.1), (-0.1, 0.1))
    mesh = UsdGeom.Mesh.Define(stage, f'{path}/bar')
    mesh.CreatePointsAttr([(x, y, z) for z in (0, 2) for x, y in square])
    sides = [[i, (i + 1) % 4, 4 + (i + 1) % 4, 4 + i] for i in range(4)]
    mesh.CreateFaceVertexCountsAttr([4] * 6)
    mesh.CreateFaceVertexIndicesAttr([*np.ravel([[3, 2, 1, 0], *sides, [4, 5, 6, 7]]).tolist()])
    binding = UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateSkeletonRel().SetTargets([skeleton.GetPath()])
    binding.CreateJointIndicesPrimvar(False, 1).Set([0] * 4 + [1] * 4)
    binding.CreateJointWeightsPrimvar(False, 1).Set([1.0] * 8)


def points(model: mujoco.MjModel, data: mujoco.MjData, name: str) -> np.ndarray:
    """Vertices of a mesh geom in the world, in order."""
    mesh = model.mesh(int(model.geom(name).dataid[0]))
    vertices = model.mesh_vert[int(mesh.vertadr[0]) :][: int(mesh.vertnum[0])]
    found = vertices @ data.geom(name).xmat.reshape(3, 3).T + data.geom(name).xpos
    return found[np.lexsort(found.round(3).T)]


def bar(end: Any) -> np.ndarray:
    """Corners of the bar in the world with its far end where a function puts `(x, y)`."""
    square = ((-0.1, -0.1), (0.1, -0.1), (0.1, 0.1), (-0.1, 0.1))
    found = np.array([(x, y, 1) for x, y in square] + [end(x, y) for x, y in square])
    return found[np.lexsort(found.round(3).T)]


@pytest.mark.parametrize('instanceable', [False, True])
def test_a_skinned_mesh_is_in_its_rest_pose(stage, instanceable):
    add_arm(stage, '/model/arm')
    UsdPhysics.CollisionAPI.Apply(UsdGeom.Cube.Define(stage, '/floor').GetPrim())  # the arm is just seen
    copy = UsdGeom.Xform.Define(stage, '/copy').GetPrim()
    copy.GetReferences().AddInternalReference('/model')
    copy.SetInstanceable(instanceable)
    model, data, warnings = read(stage)
    # the far end was 1 m above the joint, which is at z = 2
    for name in '/model/arm/bar', '/copy/arm/bar':
        np.testing.assert_allclose(points(model, data, name), bar(lambda x, y: (x, -1, 2 + y)), atol=1e-5)
    assert warnings == ['skinned meshes are static: /model/arm, /copy/arm']


def test_a_skinned_mesh_is_in_the_first_frame_of_its_animation(stage):
    add_arm(stage, '/arm')
    UsdPhysics.CollisionAPI.Apply(UsdGeom.Cube.Define(stage, '/floor').GetPrim())
    animation = UsdSkel.Animation.Define(stage, '/moves')
    animation.CreateJointsAttr(['shoulder/elbow'])
    animation.CreateTranslationsAttr([(0, 0, 1)])
    animation.CreateScalesAttr([(1, 1, 1)])
    for time, angle in ((5, 180), (20, 10)):
        turn = Gf.Quatf(Gf.Rotation((1, 0, 0), angle).GetQuat())
        animation.CreateRotationsAttr().Set([turn], time)
    UsdSkel.BindingAPI.Apply(stage.GetPrimAtPath('/arm/skeleton')).CreateAnimationSourceRel().SetTargets(['/moves'])
    model, data, _ = read(stage)
    np.testing.assert_allclose(points(model, data, '/arm/bar'), bar(lambda x, y: (x, -y, 1)), atol=1e-5)
