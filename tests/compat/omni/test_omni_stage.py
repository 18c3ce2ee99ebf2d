"""The stage that look-ups are answered from: what it shows of the envs, and what is put there."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from internutopia.core.util.joint import create_joint

Gf, Usd, UsdGeom, UsdLux = (pytest.importorskip(f'pxr.{name}') for name in ('Gf', 'Usd', 'UsdGeom', 'UsdLux'))
ARM = Path(__file__).parents[3] / 'examples' / 'arm.usda'

pytestmark = pytest.mark.usefixtures('stand_ins')


@pytest.fixture
def prims(stand_ins) -> ModuleType:
    return importlib.import_module('omni.isaac.core.utils.prims')


@pytest.fixture
def env(make_env, make_task, make_robot, make_block) -> Any:
    """Two envs 4 m apart: an arm, a crate of the scene, a box that moves and one that does not."""
    task = make_task(
        scene='crates',
        robots=[make_robot(position=(1, 2, 0), orientation=(0, 0, 0, 1))],
        objects=[
            make_block('box', mass=1.0, position=(0, 1, 0.1)),
            make_block('shelf', position=(0, -1, 0.5), prim_path='/furniture/shelf'),
        ],
        max_steps=2,
    )
    env = make_env(tasks=[task] * 3, env_num=2, env_offset_size=4.0)
    env.reset()
    return env


def stage() -> Any:
    return importlib.import_module('omni.usd').get_context().get_stage()


def place(path: str) -> tuple[list[float], Any]:
    """Position, and where the x axis points, in the world."""
    matrix = UsdGeom.XformCache().GetLocalToWorldTransform(stage().GetPrimAtPath(path))
    return list(matrix.ExtractTranslation()), matrix.TransformDir(Gf.Vec3d(1, 0, 0))


def test_an_env_is_a_prim_with_everything_in_it(env, prims):
    for env_id in (0, 1):
        for path in ('', '/scene', '/scene/crate', '/robots/arm', '/robots/arm/upper', '/objects/furniture/shelf'):
            assert prims.get_prim_type_name(f'/World/env_{env_id}{path}') == 'Xform'
    assert not prims.is_prim_path_valid('/World/env_2')
    assert not prims.get_prim_at_path('/World/env_0/robots/leg')
    assert UsdGeom.GetStageMetersPerUnit(stage()) == 1
    assert UsdGeom.GetStageUpAxis(stage()) == 'Z'


def test_places_are_those_of_now(env):
    assert place('/World/env_1')[0] == [0, 4, 0]
    position, x_axis = place('/World/env_1/robots/arm')
    np.testing.assert_allclose(position, [1, 6, 0], atol=1e-6)
    np.testing.assert_allclose(x_axis, [-1, 0, 0], atol=1e-6)
    np.testing.assert_allclose(place('/World/env_1/objects/furniture/shelf')[0], [0, 3, 0.5], atol=1e-6)
    task = env.runner.current_tasks['1']
    task.objects['box'].body.set_pose([2, 0, 3])
    task.robots['arm'].articulation.set_pose([0, 0, 1], [1, 0, 0, 0])
    np.testing.assert_allclose(place('/World/env_1/objects/box')[0], [2, 4, 3], atol=1e-6)
    np.testing.assert_allclose(place('/World/env_1/robots/arm')[0], [0, 4, 1], atol=1e-6)
    np.testing.assert_allclose(place('/World/env_0/objects/box')[0], [0, 1, 0.1], atol=1e-6)


def test_poses_are_operations_whatever_those_of_the_file_are(make_env, make_task, tmp_path):
    """A body whose file has a translation and an orientation of single precision shows where it is now."""
    from pxr import UsdPhysics

    authored = Usd.Stage.CreateNew(str(tmp_path / 'room.usda'))
    UsdGeom.SetStageMetersPerUnit(authored, 1.0)
    UsdGeom.SetStageUpAxis(authored, UsdGeom.Tokens.z)
    authored.SetDefaultPrim(UsdGeom.Xform.Define(authored, '/room').GetPrim())
    cup = UsdGeom.Cube.Define(authored, '/room/shelf_1/cup_1')
    cup.AddTranslateOp(UsdGeom.XformOp.PrecisionFloat).Set(Gf.Vec3f(1, 0, 2))
    cup.AddOrientOp(UsdGeom.XformOp.PrecisionFloat).Set(Gf.Quatf(0.5**0.5, 0, 0, 0.5**0.5))
    cup.AddScaleOp().Set(Gf.Vec3f(0.1, 0.2, 0.3))
    UsdPhysics.RigidBodyAPI.Apply(cup.GetPrim())
    UsdPhysics.CollisionAPI.Apply(cup.GetPrim())
    authored.Save()
    env = make_env(tasks=[make_task(scene=str(tmp_path / 'room.usda'), robots=[])] * 2, env_num=2, env_offset_size=4.0)
    env.reset()
    prim = stage().GetPrimAtPath('/World/env_1/scene/shelf_1/cup_1')
    body = env.runner.get_obj('room/shelf_1/cup_1', 1)
    body.set_pose([3, 1, 2.5], [1, 0, 0, 0])
    body.set_linear_velocity([1, 0, 0])
    for _ in range(3):
        env.step([None, None])
        np.testing.assert_allclose(prim.GetAttribute('xformOp:translate').Get(), body.get_pose()[0], atol=1e-6)
    assert prim.GetAttribute('xformOp:orient').Get().GetReal() == pytest.approx(1)
    np.testing.assert_allclose(prim.GetAttribute('xformOp:scale').Get(), [0.1, 0.2, 0.3], atol=1e-6)
    np.testing.assert_allclose(place(str(prim.GetPath()))[0], body.get_world_pose()[0], atol=1e-6)
    prims = importlib.import_module('omni.isaac.core.utils.prims')
    assert prims.get_prim_at_path(body.unwrap().prim_path) == prim  # which has `room` in it
    assert not prims.is_prim_path_valid('/World/env_1/scene/room/shelf_1/cup_2')
    create_joint('/hang', 'FixedJoint', body1=str(prim.GetPath()))
    held = body.get_pose()[0]
    for _ in range(9):
        env.step([None, None])
    np.testing.assert_allclose(body.get_pose()[0], held, atol=1e-3)


def test_assets_of_usd_are_there_with_all_their_prims(make_env, make_task, make_robot, prims):
    arm = make_robot(str(ARM), name='arm', prim_path='/arm', controllers=[])
    env = make_env(tasks=[make_task(scene=str(ARM), scene_scale=(2, 2, 2), robots=[arm])], env_num=1)
    env.reset()
    file = Usd.Stage.Open(str(ARM))
    top = file.GetDefaultPrim()
    for parent in ('/World/env_0/scene', '/World/env_0/robots/arm'):
        for prim in Usd.PrimRange(top):
            copied = prims.get_prim_at_path(parent + prim.GetPath().pathString.removeprefix(top.GetPath().pathString))
            assert copied.GetTypeName() == prim.GetTypeName()


def test_lights_stay_until_their_episode_ends(env):
    for env_id in (0, 1):
        stage().RemovePrim('/World/distant_light')  # there is none
        light = UsdLux.DiskLight.Define(stage(), f'/World/env_{env_id}/lamp')
        light.CreateIntensityAttr(5000)
        light.CreateColorAttr(Gf.Vec3f(1, 0.9, 0.8))
        light.CreateRadiusAttr(2.0)
        lamp = UsdGeom.Xformable(light)
        lamp.AddTranslateOp().Set(Gf.Vec3f(0, 0, 3))
        lamp.AddRotateXYZOp().Set(Gf.Vec3f(0, 180, 0))
    env.step([None, None])
    assert place('/World/env_1/lamp')[0] == [0, 4, 3]
    env.step([None, None])
    kept_task = env.runner.current_tasks['0']  # a script may keep an episode that is over
    env.reset([0])
    assert kept_task.robots
    assert not stage().GetPrimAtPath('/World/env_0/lamp')
    kept = UsdLux.DiskLight(stage().GetPrimAtPath('/World/env_1/lamp'))
    assert kept.GetIntensityAttr().Get() == 5000
    env.reset([1])  # there is no episode left
    assert not stage().GetPrimAtPath('/World/env_1')
    assert stage().GetPrimAtPath('/World/env_0')
    env.close()
    assert [prim.GetPath().pathString for prim in stage().Traverse()] == ['/World']


def test_names_that_usd_does_not_allow_are_left_out(make_env, make_task, make_robot, caplog, prims):
    env = make_env(tasks=[make_task(robots=[make_robot(prim_path='/my robot', name='my robot')])], env_num=1)
    env.reset()
    assert prims.is_prim_path_valid('/World/env_0/scene')
    assert 'the stage has no prim /World/env_0/robots/my robot: USD allows' in caplog.text


def test_queries(env, prims):
    arm = '/World/env_1/robots/arm'
    assert prims.get_prim_path(prims.get_prim_parent(prims.get_prim_at_path(arm))) == '/World/env_1/robots'
    children = prims.get_prim_children(prims.get_prim_at_path(arm))
    assert {child.GetName() for child in children} == {'base', 'upper', 'lower'}
    assert prims.find_matching_prim_paths('/World/env_.*/robots/arm/upp.r') == [
        f'/World/env_{env_id}/robots/arm/upper' for env_id in (0, 1)
    ]
    assert prims.find_matching_prim_paths('/World/env_1/arm') == []
    found = prims.get_all_matching_child_prims('/World/env_1', lambda path: 'arm' in path, depth=2)
    assert [prims.get_prim_path(prim) for prim in found] == [arm]
    assert len(prims.get_all_matching_child_prims(arm, depth=1)) == 4
    first = prims.get_first_matching_child_prim('/World', lambda path: path.endswith('arm'))
    assert prims.get_prim_path(first) == '/World/env_0/robots/arm'
    assert prims.get_first_matching_child_prim('/World', lambda path: False) is None
    parent = prims.get_first_matching_parent_prim(f'{arm}/upper', lambda path: 'env_1' in path.rsplit('/', 1)[-1])
    assert prims.get_prim_path(parent) == '/World/env_1'
    assert prims.get_first_matching_parent_prim(arm, lambda path: False) is None
    assert prims.is_prim_root_path('/')


def test_edits_and_attributes(prims):
    light = prims.define_prim('/World/lamp', 'SphereLight')
    prims.set_prim_attribute_value('/World/lamp', 'inputs:intensity', 7.0)
    assert UsdLux.SphereLight(light).GetIntensityAttr().Get() == 7
    prims.set_prim_property('/World/lamp', 'inputs:intensity', 8.0)
    assert prims.get_prim_attribute_value('/World/lamp', 'inputs:intensity') == 8
    assert prims.get_prim_property('/World/lamp', 'inputs:intensity') == 8
    assert 'inputs:color' in prims.get_prim_attribute_names('/World/lamp')
    prims.set_prim_visibility(light, False)
    assert prims.get_prim_attribute_value('/World/lamp', 'visibility') == 'invisible'
    prims.set_prim_visibility(light, True)
    assert UsdGeom.Imageable(light).ComputeVisibility() == 'inherited'
    with pytest.raises(ValueError, match="a prim at '/World/lamp' already"):
        prims.define_prim('/World/lamp')
    prims.delete_prim('/World/lamp')
    prims.delete_prim('/World/lamp')
    assert not prims.is_prim_path_valid('/World/lamp')


def test_a_prim_is_created_with_pose_attributes_and_label(env, prims, caplog):
    label = {'semantic_label': 'mark', 'attributes': {'size': 0.5}}
    cube = prims.create_prim('/World/env_1/marker_1', 'Cube', position=[1, 5, 2], scale=[2, 2, 2], **label)
    semantics = importlib.import_module('omni.isaac.core.utils.semantics')
    assert cube.GetAttribute('size').Get() == 0.5
    assert place('/World/env_1/marker_1')[0] == [1, 5, 2]
    assert semantics.get_semantics(cube)['Semantics'] == ('class', 'mark')
    prims.create_prim('/World/env_1/arm_2', usd_path=str(ARM), translation=[1, 1, 0], orientation=[0, 0, 0, 1])
    assert place('/World/env_1/arm_2')[0] == [1, 5, 0] and '/World/env_1/arm_2 is only on the stage' in caplog.text
    with pytest.raises(ValueError, match='position .* or translation .* not both'):
        prims.create_prim('/World/both', position=[0, 0, 0], translation=[0, 0, 0])
    xform = importlib.import_module('omni.isaac.core.prims').XFormPrim('/World/marker', position=[1.0, 2.0, 3.0])
    assert xform.get_world_pose()[0].tolist() == [1, 2, 3]
    for missing in ('/World/env_1/robots/leg', '/World/nowhere/marker'):
        with pytest.raises(ValueError, match='there is no prim at'):
            importlib.import_module('omni.isaac.core.prims').XFormPrim(missing)


def test_paths_of_robots_and_of_bodies(env, prims):
    find = prims.find_matching_prim_paths
    assert find('/World/env_*/*/*', 'articulation') == [f'/World/env_{i}/robots/arm' for i in (0, 1)]
    bodies = find('/World/env_1/*/*', 'rigid_body') + find('/World/env_1/robots/arm/*', 'rigid_body')
    links = {f'/World/env_1/{path}' for path in ('scene/crate', 'objects/box', 'robots/arm/upper', 'robots/arm/lower')}
    assert links <= set(bodies) and '/World/env_1/robots/arm' not in bodies


def test_mistakes_name_what_is_there(env, prims):
    with pytest.raises(ValueError, match="no prim at '/World/env_0/robots/arms'; below '/World/env_0/robots': .*'arm'"):
        prims.get_prim_attribute_value('/World/env_0/robots/arms', 'visibility')
    with pytest.raises(ValueError, match="no prim at '/World/env_7'"):
        prims.get_prim_type_name('/World/env_7/robots')
    with pytest.raises(ValueError, match="no attribute 'visible'; did you mean 'visibility'"):
        prims.get_prim_property('/World/env_0', 'visible')
    with pytest.raises(ValueError, match="prim_type 'camera': give one of articulation, rigid_body"):
        prims.find_matching_prim_paths('/World/env_.*', 'camera')


def test_the_stage_module(env, capsys, tmp_path):
    module = importlib.import_module('isaacsim.core.utils.stage')
    assert module.get_current_stage() == stage()
    assert (module.get_stage_units(), module.get_stage_up_axis(), module.is_stage_loading()) == (1, 'Z', False)
    module.update_stage()
    assert '/World/env_0/robots/arm' in [prim.GetPath().pathString for prim in module.traverse_stage()]
    module.print_stage_prim_paths()
    assert '/World/env_1/objects/box\n' in capsys.readouterr().out
    assert module.get_next_free_path('/World/env_0') == '/World/env_0_01'
    assert module.get_next_free_path('arm', '/World') == '/World/arm'
    module.add_reference_to_stage(str(ARM), '/World/arm')
    assert stage().GetPrimAtPath('/World/arm').GetChildren()
    with pytest.raises(FileNotFoundError, match='nothing.usd'):
        module.add_reference_to_stage(str(tmp_path / 'nothing.usd'), '/World/nothing')
