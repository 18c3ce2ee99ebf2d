"""A scene that the script writes with `Usd.Stage.CreateNew`: neither units nor up axis are stated, as by default."""
# pyright: reportArgumentType=false, reportCallIssue=false, reportMissingImports=false, reportAttributeAccessIssue=false

import sys
from pathlib import Path

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg


def write(file):
    from pxr import Gf, PhysxSchema, Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.CreateNew(str(file))
    world = UsdGeom.Xform.Define(stage, '/World')
    stage.SetDefaultPrim(world.GetPrim())
    ground = UsdGeom.Cube.Define(stage, '/World/ground')
    ground.CreateSizeAttr(1.0)
    ground.AddTranslateOp().Set(Gf.Vec3d(0, 0, -0.05))
    ground.AddScaleOp().Set(Gf.Vec3f(20, 20, 0.1))
    UsdPhysics.CollisionAPI.Apply(ground.GetPrim())
    for name, z in (('ball', 2.0), ('balloon', 2.0)):
        ball = UsdGeom.Sphere.Define(stage, f'/World/{name}')
        ball.CreateRadiusAttr(0.1)
        ball.AddTranslateOp().Set(Gf.Vec3d(1.0 if name == 'ball' else -1.0, 1.0, z))
        UsdPhysics.RigidBodyAPI.Apply(ball.GetPrim())
        UsdPhysics.CollisionAPI.Apply(ball.GetPrim())
    PhysxSchema.PhysxRigidBodyAPI.Apply(stage.GetPrimAtPath('/World/balloon')).CreateDisableGravityAttr(True)
    PhysxSchema.PhysxContactReportAPI.Apply(stage.GetPrimAtPath('/World/ball')).CreateThresholdAttr(0.0)
    stage.Save()


file = Path(sys.argv[1]) / 'ramp.usda'
write(file)
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=str(file),
            robots=[JetbotRobotCfg(position=(0, 0, 0.0), controllers=[move_by_speed_cfg])],
        )
    ],
)
import_extensions()
env = Env(config)
env.reset()

import carb  # noqa: E402
import omni.usd  # noqa: E402
from pxr import Usd, UsdGeom  # noqa: E402, TID253

stage = omni.usd.get_context().get_stage()
ball, balloon = (stage.GetPrimAtPath(f'/World/env_0/scene/{name}') for name in ('ball', 'balloon'))
fell = []
for step in range(1, 241):
    env.step({move_by_speed_cfg.name: [0.5, 0.0]})
    height = omni.usd.get_world_transform_matrix(ball).ExtractTranslation()[2]
    if step in (48, 96, 144):
        fell.append(2.0 - height)
carb.log_info(f'fell {fell}')
expected = [0.5 * 9.81 * step * (step + 1) / 240**2 for step in (48, 96, 144)]  # of semi-implicit steps
print('fell', fell, 'expected', expected)
assert np.allclose(fell, expected, rtol=1e-3)
assert abs(omni.usd.get_world_transform_matrix(ball).ExtractTranslation()[2] - 0.1) < 0.01
assert UsdGeom.Xformable(balloon).ComputeLocalToWorldTransform(Usd.TimeCode.Default()).ExtractTranslation()[2] == 2.0
env.simulation_app.update()
env.close()
