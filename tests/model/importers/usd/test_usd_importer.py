"""Stages as a whole: what is traversed, bodies, lights, warnings and content keys."""

from __future__ import annotations

import logging
from typing import Any

import mujoco
import numpy as np
import pytest
from usd_stages import CORNERS, add_cube_mesh, add_mesh, move, new_stage, placed, saved, srgb

from internutopia.model.importers.load import content_key, load_spec

Sdf, UsdGeom, UsdPhysics, UsdShade = (
    pytest.importorskip(f'pxr.{name}') for name in ('Sdf', 'UsdGeom', 'UsdPhysics', 'UsdShade')
)


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
        'material': [*srgb(0, 0.25, 0.75), 1],
        'own': [*srgb(1, 0.5, 0), 0.5],
        'inherited': [*srgb(0.1, 0.2, 0.3), 1],
        'texture': [*srgb(0.1, 0.2, 0.3), 1],  # not read; the display colour stands in
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
        (CORNERS, [[0, 1, 8]], r'faceVertexIndices must be within 0\.\.7, the points there are: /World/bad'),
        ([(0, 0, 0), (1, 0, 0), (0, float('nan'), 0)], [[0, 1, 2]], 'points must be finite numbers: /World/bad'),
    ],
)
def test_a_broken_mesh_of_which_nothing_is_left_is_named(tmp_path, points, faces, message):
    stage = new_stage(tmp_path / 'a.usda')
    add_mesh(stage, '/World/bad', points, faces)
    with pytest.raises(ValueError, match=message) as error:
        saved(stage)
    assert str(tmp_path / 'a.usda') in str(error.value)


def test_face_counts_that_do_not_fit_are_an_error(tmp_path):
    stage = new_stage(tmp_path / 'a.usda')
    add_cube_mesh(stage, '/bad').CreateFaceVertexCountsAttr([4] * 5)
    with pytest.raises(ValueError, match='faceVertexCounts sum up to 20, but there are 24 faceVertexIndices: /bad'):
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
