"""The scene and the world of Isaac Sim as scripts of 2.x reach below those of an env, and where they put things."""

# pyright: reportMissingImports=false, reportPossiblyUnboundVariable=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from internutopia.core.config.object import ObjectCfg
from internutopia.core.object import BaseObject
from internutopia.core.robot.isaacsim.rigid_body import IsaacsimRigidBody
from internutopia.core.robot.rigid_body import IRigidBody


@BaseObject.register('CrateOf2x')
class CrateOf2x(BaseObject):
    """Two boxes that its class adds: a crate where the config says, and a lid above it."""

    def set_up_to_scene(self, scene: Any) -> None:
        from omni.isaac.core.objects import DynamicCuboid  # pyright: ignore[reportMissingImports]

        position = np.array(self.config.position)
        self.body: Any = DynamicCuboid(self.config.prim_path, self.config.name, position, scale=[0.2] * 3, mass=1.0)
        lid = DynamicCuboid(f'{self.config.prim_path}_lid', 'lid', position + [0, 0, 0.5], scale=[0.2, 0.2, 0.02])
        scene.unwrap().add(self.body)
        scene.add(lid)


@BaseObject.register('PartOf2x')
class PartOf2x(BaseObject):
    """A USD file that its class adds as 2.x did: to the stage, and from there as a body, or as what stays in place."""

    def set_up_to_scene(self, scene: Any) -> None:
        from omni.isaac.core.prims import GeometryPrim, RigidPrim
        from omni.isaac.core.utils.stage import add_reference_to_stage
        from omni.physx.scripts import utils

        class Part(RigidPrim):
            def __init__(self, prim_path: str, usd_path: str, **fields: Any):
                prim = add_reference_to_stage(usd_path=usd_path, prim_path=prim_path)
                utils.setCollider(prim, approximationShape=None)
                RigidPrim.__init__(self, prim_path=prim_path, mass=1.5, **fields)

        config: Any = self.config
        pose = {'position': np.array(config.position), 'orientation': np.array(config.orientation)}
        self.part = Part(config.prim_path, PART_FILE[0], name=config.name, scale=np.full(3, 2.0), **pose)
        scene.add(self.part)
        add_reference_to_stage(PART_FILE[0], f'{config.prim_path}_shelf')
        below = np.array(config.position) - [0, 0, 1.0]
        scene.add(GeometryPrim(f'{config.prim_path}_shelf', 'shelf', position=below, collision=True))


PART_FILE: list[str] = []


def test_a_usd_file_that_is_added_to_the_stage_becomes_a_body(make_env, make_task, tmp_path):
    from pxr import Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.CreateNew(str(tmp_path / 'part.usda'))
    cube = UsdGeom.Cube.Define(stage, '/Part')
    cube.CreateSizeAttr(0.1)
    UsdPhysics.CollisionAPI.Apply(cube.GetPrim())
    stage.SetDefaultPrim(cube.GetPrim())
    stage.Save()
    PART_FILE[:] = [str(tmp_path / 'part.usda')]
    part = ObjectCfg(type='PartOf2x', name='part', prim_path='/part', position=(1.0, 0.0, 2.0))
    env = make_env(tasks=[make_task(robots=[], objects=[part], max_steps=999)] * 2, env_num=2, compat='2.x')
    env.reset()
    dt = env.get_dt()
    for task in env.runner.current_tasks.values():
        assert (
            task.objects['part'].part.get_world_pose()[0].tolist() == (np.array(task.env_offset) + [1, 0, 2]).tolist()
        )
        assert task.objects['part'].part.get_mass() == 1.5
    for _ in range(10):
        env.step([None, None])
    height = task.objects['part'].part.get_world_pose()[0][2]
    assert height == pytest.approx(2 - 0.5 * 9.81 * (10 * dt) ** 2, abs=2e-3)
    for _ in range(int(2 / dt)):
        env.step([None, None])
    # it has an edge of 0.2 m, and lies on a shelf of 0.1 m that is 1 m lower
    assert task.objects['part'].part.get_world_pose()[0][2] == pytest.approx(1.15, abs=2e-3)


@pytest.fixture
def env(make_env, make_task, make_robot, make_block) -> Any:
    """Two envs, 4 m apart, of the switch."""
    crate = ObjectCfg(type='CrateOf2x', name='crate_1', prim_path='/crates/crate_1', position=(1.0, 0.0, 2.0))
    box = make_block('box', mass=1.0, position=(0, 1, 2))
    task = make_task(robots=[make_robot()], objects=[box, crate], max_steps=99)
    env = make_env(tasks=[task] * 2, env_num=2, env_offset_size=4.0, compat='2.x')
    env.reset()
    return env


def test_what_a_class_adds_is_in_its_env_wherever_that_stands(env):
    for env_id, task in enumerate(env.runner.current_tasks.values()):
        assert env.runner.get_obj('crate_1', env_id).get_pose()[0].tolist() == [1, 0, 2]
        assert env.runner.get_obj('lid', env_id).get_pose()[0].tolist() == [1, 0, 2.5]
        assert task.objects['crate_1'].body.get_mass() == 1.0  # an attribute of the class, whatever it is called


def test_a_handle_that_is_made_later_is_put_in_the_world(env):
    body = IRigidBody.create(prim_path='/World/env_1/objects/box', position=[0.5, 5.0, 3.0])
    assert body.get_world_pose()[0].tolist() == [0.5, 5, 3] and body.get_pose()[0].tolist() == [0.5, 1, 3]
    handle = IsaacsimRigidBody('/World/env_1/objects/box', linear_velocity=[0, 0, 1])
    handle.save_status()
    handle.post_reset()
    env.step([None, None])
    assert handle.get_world_pose()[0][2] > 3
    handle.restore_status()
    assert handle.get_world_pose()[0].tolist() == [0.5, 5, 3] and handle.get_linear_velocity().tolist() == [0, 0, 1]


def test_the_scene_and_the_world(env):
    from omni.isaac.core import SimulationContext, World  # pyright: ignore[reportMissingImports]

    world = env.runner._world
    assert World.instance() is SimulationContext.instance() is world
    native = env.runner.current_tasks['1']._scene.unwrap()
    assert native.stage.GetPrimAtPath('/World/env_1/objects/box') and world.stage == native.stage
    assert native.get_object('box').get_world_pose()[0].tolist() == [0, 5, 2]
    assert native.get_object('arm').num_dof == 2 and native.get_object('bin') is None
    native.remove_object('box')
    assert not native.object_exists('box') and world.scene.object_exists('box')  # that of the first env


def test_physics_callbacks_are_called_after_each_step_of_env_and_world(env):
    calls: list[float] = []
    world = env.runner._world
    world.add_physics_callback('count_1', calls.append)
    with pytest.raises(ValueError, match="a physics callback 'count_1' already"):
        world.add_physics_callback('count_1', calls.append)
    env.step([None, None])
    world.step(render=False)
    env.reset([0])
    assert calls == [env.get_dt()] * 2
    world.remove_physics_callback('count_1')
    env.step([None, None])
    assert len(calls) == 2 and not world.physics_callback_exists('count_1')
