"""Colliders of USD files: hulls, convex parts, boxes and spheres."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.config import Config, SimConfig, TaskCfg
from internutopia.core.vec_env import Env
from internutopia.model.importers import usd
from internutopia.model.meshes.coacd_worker import CoacdProcess
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

if importlib.util.find_spec('coacd') is None:
    pytest.skip('needs coacd', allow_module_level=True)
Gf, UsdGeom, UsdPhysics = (pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'UsdGeom', 'UsdPhysics'))

GEOM = mujoco.mjtGeom
CUBE = [-0.5, 0.5]
SOLID = np.ones((1, 1, 1), bool)


def read(stage: Any) -> tuple[mujoco.MjModel, list[str]]:
    """What the importer makes of a stage, and its warnings."""
    stage.Save()
    spec, warnings = usd.load_with_warnings(Path(stage.GetRootLayer().realPath))
    return spec.compile(), warnings


def colliders(model: mujoco.MjModel, path: str) -> list[Any]:
    """Geoms of a prim that collide."""
    geoms = [model.geom(i) for i in range(model.ngeom)]
    return [geom for geom in geoms if geom.name.startswith(path) and geom.contype[0]]


def make_body(mesh: Any, mass: float) -> None:
    UsdPhysics.RigidBodyAPI.Apply(mesh.GetPrim())
    UsdPhysics.MassAPI.Apply(mesh.GetPrim()).CreateMassAttr(mass)


@pytest.mark.parametrize('approximation', ['none', 'meshSimplification', 'sdf', 'convexDecomposition', 'novel'])
def test_what_is_concave_and_does_not_move_collides_as_parts(stage, add_mesh, trough, approximation):
    add_mesh('/World/trough', *trough, approximation=approximation)
    model, warnings = read(stage)
    assert {geom.name for geom in colliders(model, '/World/trough')} == {f'/World/trough/part_{i}' for i in range(3)}
    assert {int(geom.group[0]) for geom in colliders(model, '/World/trough')} == {3}
    shown = model.geom('/World/trough')
    assert (shown.group[0], shown.contype[0], shown.conaffinity[0]) == (2, 0, 0)
    assert model.mesh(int(shown.dataid[0])).facenum[0] == len(trough[1])  # the visual mesh is whole
    assert bool(warnings) == (approximation == 'novel')


def test_hulls_and_convex_meshes_are_one_geom_that_is_seen_and_collides(stage, add_mesh, trough, blocks):
    add_mesh('/hull', *trough, approximation='convexHull')
    add_mesh('/cube', *blocks(CUBE, CUBE, CUBE, SOLID), approximation='none')
    model, warnings = read(stage)
    assert model.ngeom == 2 and not warnings
    assert all(model.geom(name).group[0] == 0 and model.geom(name).contype[0] for name in ('/hull', '/cube'))


def test_a_box_around_a_mesh_is_as_small_as_it_can_be(stage, add_mesh, blocks):
    points, faces = blocks([-0.2, 0.2], [-0.3, 0.3], [-0.5, 0.5], SOLID)
    turn = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, 1]])
    for name, vertices in {'/straight': points, '/turned': points @ turn.T}.items():
        mesh = add_mesh(name, vertices + [1, 2, 0], faces, approximation='boundingCube')
        UsdGeom.Xformable(mesh).AddTranslateOp().Set(Gf.Vec3d(0, 0, 3))
    model, _ = read(stage)
    for name in '/straight', '/turned':
        (box,) = colliders(model, name)
        assert box.type[0] == GEOM.mjGEOM_BOX and box.group[0] == 3
        np.testing.assert_allclose(np.sort(box.size), [0.2, 0.3, 0.5], atol=1e-5)
        np.testing.assert_allclose(box.pos, [1, 2, 3], atol=1e-5)


def test_a_sphere_around_a_mesh_is_hardly_larger_than_needed(stage, add_mesh, blocks):
    points, faces = blocks(CUBE, CUBE, CUBE, SOLID)
    add_mesh('/cube', points + [1, 0, 0], faces, approximation='boundingSphere')
    model, _ = read(stage)
    (sphere,) = colliders(model, '/cube')
    assert sphere.type[0] == GEOM.mjGEOM_SPHERE
    assert np.sqrt(0.75) - 1e-6 <= sphere.size[0] < 1.01 * np.sqrt(0.75)
    np.testing.assert_allclose(sphere.pos, [1, 0, 0], atol=0.01)


def test_what_moves_is_decomposed_if_it_says_so_and_weighs_the_same(stage, add_mesh, trough):
    for i, approximation in enumerate(('none', 'convexDecomposition', 'sdf')):
        mesh = add_mesh(f'/body_{i}', *trough, approximation=approximation)
        make_body(mesh, mass=2.0)
    model, warnings = read(stage)
    assert [len(colliders(model, f'/body_{i}')) for i in range(3)] == [1, 3, 3]
    assert len(warnings) == 1 and '/body_0' in warnings[0] and 'convex hull' in warnings[0]
    for i in range(3):
        assert model.body(f'/body_{i}').mass[0] == pytest.approx(2)
    # the centre of mass of the hollow thing, which its hull misses: a floor and two walls above it, of equal volumes
    hollow = np.array([0.15, 0.1, (0.05 + 0.25 + 0.25) / 3])
    np.testing.assert_allclose(model.body('/body_1').ipos, hollow, atol=5e-3)


def test_an_invisible_collider_has_no_visual(stage, add_mesh, trough):
    mesh = add_mesh('/ghost', *trough, approximation='none')
    mesh.MakeInvisible()
    model, _ = read(stage)
    assert model.ngeom == 3 and {int(group) for group in model.geom_group} == {3}


def test_meshes_of_a_stage_without_colliders_stay_hollow_too(stage, add_mesh, trough):
    add_mesh('/trough', *trough)
    model, _ = read(stage)
    assert len(colliders(model, '/trough')) == 3


@pytest.mark.slow
def test_copies_share_the_meshes_and_one_decomposition(stage, add_mesh, trough, monkeypatch, tmp_path):
    """At other places, turned, larger and mirrored; skewed, so that it needs CoACD."""
    monkeypatch.setenv('INTERNUTOPIA_CACHE_PATH', str(tmp_path))
    runs, run = [], CoacdProcess.run
    monkeypatch.setattr(CoacdProcess, 'run', lambda *arguments: (runs.append(1), run(*arguments))[1])
    points = trough[0] + np.outer(trough[0][:, 0], [0.0, 0.5, 0.0])
    scales = [(1, 1, 1), (1, 1, 1), (1.3, 1.3, 1.3), (1, -1, 1)]
    for i, scale in enumerate(scales):
        place = UsdGeom.Xformable(add_mesh(f'/trough_{i}', points, trough[1], approximation='none'))
        place.AddTranslateOp().Set(Gf.Vec3d(i, 0, 0))
        place.AddRotateXYZOp().Set(Gf.Vec3f(10 * i, 20 * i, 70 * i))
        place.AddScaleOp().Set(Gf.Vec3f(*scale))
    model, _ = read(stage)
    assert len(runs) == 1
    parts = [colliders(model, f'/trough_{i}') for i in range(4)]
    count = len(parts[0])
    assert {len(each) for each in parts} == {count} and 3 <= count <= 4
    assert model.nmesh == 3 * (1 + count)  # two copies are the same but for their places
    for copy, factor in zip(parts[1:], (1.0, 1.3, 1.0), strict=True):
        for part, same in zip(parts[0], copy, strict=True):
            assert same.rbound[0] == pytest.approx(factor * part.rbound[0], rel=1e-4)


MERGED = """
def Xform "Instance" (
    prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI", "PhysxMeshMergeCollisionAPI", {collection}]
)
{{
    uniform token physics:approximation = "none"
    {listed}
    def Mesh "group"  # without points, as there are many in GRScenes
    {{
        def Mesh "a" ( prepend apiSchemas = ["PhysicsCollisionAPI"] ) {{ {cube} }}
        def Mesh "b" {{ {cube} }}
        def Mesh "c" {{ {cube} }}
    }}
}}
"""


@pytest.mark.parametrize(
    ('listed', 'expected'),
    [('', 'abc'), ('</World/Instance>', 'abc'), ('</World/Instance/group/b>', 'ab')],
    ids=['no collection', 'all', 'one and one of its own'],
)
def test_meshes_that_are_merged_collide_once_each_if_they_are_listed(load, warnings, blocks, listed, expected):
    points, faces = blocks(CUBE, CUBE, CUBE, SOLID)
    cube = (
        f'point3f[] points = {[tuple(point) for point in points.tolist()]}\n'
        f'int[] faceVertexCounts = {[3] * len(faces)}\nint[] faceVertexIndices = {faces.ravel().tolist()}\n'
    )
    collection = '"CollectionAPI:collisionmeshes"'
    include = f'prepend rel collection:collisionmeshes:includes = {listed}' if listed else ''
    model = load(MERGED.format(cube=cube, listed=include, collection=collection))
    assert [geom.name[-1] for geom in colliders(model, '/World/Instance/group')] == list(expected)
    assert model.ngeom == 3 and not warnings()  # the meshes without points are not told of, all have children


def test_meshes_that_are_merged_become_common_parts(load, warnings, blocks, tmp_path, monkeypatch):
    """Four cubes of 1 m in a square, two in each mesh, one of which is placed by its transform; and a turned copy.

    Two more copies are single colliders, by themselves, and as one of them has another physics material.
    """
    monkeypatch.setenv('INTERNUTOPIA_CACHE_PATH', str(tmp_path))
    cube, faces = blocks([0.0, 1.0], [0.0, 1.0], [0.0, 1.0], SOLID)
    points = np.concatenate([cube, cube + [1, 0, 0]])
    faces = np.concatenate([faces, faces + 8])
    mesh = (
        f'point3f[] points = {[tuple(point) for point in points.tolist()]}\n'
        f'int[] faceVertexCounts = {[3] * len(faces)}\nint[] faceVertexIndices = {faces.ravel().tolist()}\n'
    )
    instance = """
def Xform "{name}" (prepend apiSchemas = ["PhysicsCollisionAPI", {api} "PhysicsMeshCollisionAPI"])
{{
    uniform token physics:approximation = "none"
    float xformOp:rotateZ = {angle}
    uniform token[] xformOpOrder = ["xformOp:rotateZ"]
    def Mesh "a" {{ {mesh} }}
    def Mesh "b" (prepend apiSchemas = ["MaterialBindingAPI"])
    {{
        {mesh}
        {material}
        double3 xformOp:translate = (0, 1, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }}
}}
"""
    ice = """
def Material "ice" (prepend apiSchemas = ["PhysicsMaterialAPI"])
{
    float physics:staticFriction = 0.1
    float physics:dynamicFriction = 0.1
}
"""
    merge = '"PhysxMeshMergeCollisionAPI",'
    bound = 'rel material:binding:physics = </World/ice>'
    same = [
        instance.format(name=f'merged_{angle}', api=merge, angle=angle, mesh=mesh, material='') for angle in (0, 30)
    ]
    single = instance.format(name='single', api='', angle=0, mesh=mesh, material='')
    slippery = instance.format(name='slippery', api=merge, angle=0, mesh=mesh, material=bound)
    model = load(''.join([ice, *same, single, slippery]))
    assert not warnings() and model.ngeom == 8 + 1 + 1 + 2 + 2
    (straight,) = colliders(model, '/World/merged_0')
    assert straight.name == '/World/merged_0/part_0' and straight.type[0] == GEOM.mjGEOM_BOX
    np.testing.assert_allclose((*straight.pos, *straight.size), (1, 1, 0.5, 1, 1, 0.5), atol=1e-6)
    (turned,) = colliders(model, '/World/merged_30')
    np.testing.assert_allclose(turned.pos, (np.sqrt(3) / 2 - 0.5, np.sqrt(3) / 2 + 0.5, 0.5), atol=1e-6)
    np.testing.assert_allclose(turned.size, (1, 1, 0.5), atol=1e-6)
    assert [geom.name for geom in colliders(model, '/World/single')] == [f'/World/single/{k}/part_0' for k in 'ab']
    frictions = {geom.name: geom.friction[0] for geom in colliders(model, '/World/slippery')}
    expected = {'/World/slippery/a/part_0': 1.0, '/World/slippery/b/part_0': 0.1}
    assert frictions == pytest.approx(expected, rel=1e-6)  # USD's are 32-bit floats
    assert len(list((tmp_path / 'decomposition').glob('*.npz'))) == 2  # of the copies, one; of the single ones, too


def test_the_apartment_is_as_its_tool_writes_it(make_apartment, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['make_apartment.py', '--check'])
    assert make_apartment.main() == 0


def test_a_robot_drives_through_the_doorway_and_is_stopped_by_the_wall(stage, add_mesh, room, tmp_path):
    import_extensions()
    add_mesh('/World/room', *room, approximation='none')
    ground = UsdGeom.Plane.Define(stage, '/World/ground')
    UsdPhysics.CollisionAPI.Apply(ground.GetPrim())
    stage.Save()

    def drive(heading: tuple[float, float, float, float]) -> TaskCfg:
        jetbot = JetbotRobotCfg(position=(0.5, 0.0, 0.03), orientation=heading, controllers=[move_by_speed_cfg])
        return FiniteStepTaskCfg(scene_asset_path=str(tmp_path / 'stage.usda'), robots=[jetbot], max_steps=10_000)

    half = 0.5**0.5
    headings = (1.0, 0.0, 0.0, 0.0), (half, 0.0, 0.0, half)  # towards the doorway, to the left towards the wall
    tasks = [drive(heading) for heading in headings]
    simulator = SimConfig(physics_dt=1 / 240, substeps=4)
    env = Env(Config(simulator=simulator, env_num=2, task_configs=tasks, metrics_save_path='none'))
    env.reset()
    obs: Any = None
    for _ in range(240):  # 4 s
        obs, *_ = env.step([{'jetbot': {'move_by_speed': [0.5, 0.0]}}] * 2)
    through, stopped = (np.asarray(each['jetbot']['position']) for each in obs)
    env.close()
    assert through[0] > 1.5 and abs(through[1]) < 0.2
    assert 0.5 < stopped[1] < 1.0
