"""Helper modules of InternUtopia 2.2.1, under its paths: what they compute and do."""

from __future__ import annotations

import numpy as np
import pytest

from internutopia.core.util.interaction import BaseInteraction


def test_quaternions_of_torch():
    import torch

    from internutopia.core.util import math  # pyright: ignore[reportAttributeAccessIssue]

    turn = torch.tensor([[0.5**0.5, 0.0, 0.0, 0.5**0.5], [1.0, 0.0, 0.0, 0.0]])  # a quarter turn to the left, and none
    seen = math.quat_rotate_inverse(turn, torch.tensor([[1.0, 0.0, 2.0], [1.0, 0.0, 2.0]]))
    assert isinstance(seen, torch.Tensor) and seen.dtype == torch.float32
    torch.testing.assert_close(seen, torch.tensor([[0.0, -1.0, 2.0], [1.0, 0.0, 2.0]]))
    half = math.quaternion_multiply(turn[0], turn[0])
    torch.testing.assert_close(half, torch.tensor([0.0, 0.0, 0.0, 1.0]))
    torch.testing.assert_close(
        math.quaternion_multiply(turn, math.quaternion_conjugate(turn)), torch.tensor([[1.0, 0.0, 0.0, 0.0]] * 2)
    )
    pitched = torch.tensor([0.5**0.5, 0.0, 0.5**0.5, 0.0], dtype=torch.float64)  # nose down: gravity is ahead
    gravity = math.quaternion_to_gravity_component(pitched)
    torch.testing.assert_close(gravity, torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64))
    assert math.quaternion_to_gravity_component(turn).tolist()[1] == [0.0, 0.0, -1.0]


def test_an_interaction_of_ones_own():
    @BaseInteraction.register('Joystick')
    class Joystick(BaseInteraction):
        def get_input(self) -> np.ndarray:
            return np.ones(2)

    stick = BaseInteraction.interactions.pop('Joystick')()
    assert isinstance(stick, Joystick) and stick.type == 'Joystick' and stick.get_input().tolist() == [1.0, 1.0]


def test_motion_capture_is_requested_over_http(mocap_server):
    from internutopia_extension.interactions.motion_capture import MocapInteraction

    url, requested, answers = mocap_server
    answers.append({'lh_bones_kps': [[0.0, 1.0, 2.0]]})
    mocap = MocapInteraction(url + '/')
    mocap.server_start()
    assert mocap.step() == {'lh_bones_kps': [[0.0, 1.0, 2.0]]}
    mocap.server_stop()
    assert requested == ['/start', '/results', '/stop']


def test_a_motion_capture_server_that_is_not_there_is_named():
    from internutopia_extension.interactions.motion_capture import MocapInteraction

    with pytest.raises(ConnectionError, match='no motion-capture server answers at http://127.0.0.1:9/results'):
        MocapInteraction('http://127.0.0.1:9').step()


def test_colliders_of_a_stage_are_what_a_scene_made_of_it_has(make_env, make_task, make_robot, tmp_path):
    from pxr import Gf, Usd, UsdGeom, UsdPhysics

    from internutopia.core.util import physics  # pyright: ignore[reportAttributeAccessIssue]

    stage = Usd.Stage.CreateNew(str(tmp_path / 'ground.usda'))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, '/ground').GetPrim())
    mesh = UsdGeom.Mesh.Define(stage, '/ground/slab')
    corners = [(x, y, z) for z in (-1.0, 0.0) for x, y in ((-5, -5), (5, -5), (5, 5), (-5, 5))]
    mesh.CreatePointsAttr([Gf.Vec3f(*corner) for corner in corners])
    mesh.CreateFaceVertexCountsAttr([4] * 6)
    mesh.CreateFaceVertexIndicesAttr(
        [3, 2, 1, 0, 4, 5, 6, 7, 0, 1, 5, 4, 1, 2, 6, 5, 2, 3, 7, 6, 3, 0, 4, 7],
    )
    ground = stage.GetPrimAtPath('/ground')

    def height_after_a_fall(name: str) -> float:
        path = str(tmp_path / f'{name}.usda')
        stage.Export(path)
        robot = make_robot('hopper', type='PassiveRobot', position=(0, 0, 0.4), controllers=[])
        env = make_env(tasks=[make_task(path, robots=[robot], max_steps=999)], env_num=1, sim={'substeps': 200})
        env.reset()
        return float(env.step([None])[0][0]['hopper']['position'][2])

    with pytest.raises(ValueError, match='/ground/slab is no collider'):
        physics.activate_collider_(mesh.GetPrim())
    physics.set_collider(ground, 'convexHull')
    assert UsdPhysics.MeshCollisionAPI(mesh).GetApproximationAttr().Get() == 'convexHull'
    assert height_after_a_fall('on') > 0.0
    physics.deactivate_collider(ground)
    assert height_after_a_fall('off') < -3.0
    physics.activate_collider(ground)
    assert height_after_a_fall('on_again') > 0.0
    physics.remove_collider(ground)
    assert not mesh.GetPrim().HasAPI(UsdPhysics.CollisionAPI)
