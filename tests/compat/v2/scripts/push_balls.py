"""Jetbots push balls of a class of the script's own; walls come while tasks load, and are found by rays."""
# pyright: basic, reportMissingImports=false, reportArgumentType=false, reportIncompatibleVariableOverride=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportIncompatibleMethodOverride=false

import json
import sys

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.config.object import ObjectCfg
from internutopia.core.config.task import MetricCfg, TaskCfg
from internutopia.core.object import BaseObject
from internutopia.core.task import BaseTask
from internutopia.core.task.metric import BaseMetric
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg

RESULTS = sys.argv[1] + '/push.jsonl'


class BallCfg(ObjectCfg):
    type: str = 'MyBall'
    radius: float = 0.05
    mass: float = 0.1


class PushCfg(MetricCfg):
    type: str = 'PushMetric'
    name: str = 'push'


class SortCfg(TaskCfg):
    type: str = 'SortTask'
    limit: int = 75


config = Config(
    simulator=SimConfig(physics_dt=1 / 60, rendering_dt=1 / 60, use_fabric=False, headless=not has_display()),
    env_num=3,
    env_offset_size=6.0,
    metrics_save_path=RESULTS,
    task_configs=[
        SortCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[JetbotRobotCfg(position=(0.0, 0.0, 0.0), controllers=[move_by_speed_cfg])],
            objects=[BallCfg(name='ball', prim_path='/ball', position=(0.5, 0.0, 0.05))],
            metrics=[PushCfg()],
        )
        for _ in range(4)
    ],
)
import_extensions()


@BaseObject.register('MyBall')
class MyBall(BaseObject):
    def __init__(self, config, scene):
        super().__init__(config, scene)
        self._cfg = config

    def set_up_to_scene(self, scene):
        from omni.isaac.core.materials import PhysicsMaterial
        from omni.isaac.core.objects import DynamicSphere

        self.ball = DynamicSphere(
            prim_path=self._cfg.prim_path,
            name=self._cfg.name,
            position=np.array(self._cfg.position),
            radius=self._cfg.radius,
            color=np.array([1.0, 0.3, 0.0]),
            mass=self._cfg.mass,
            physics_material=PhysicsMaterial(
                prim_path='/World/Physics_Materials/rubber', static_friction=0.8, dynamic_friction=0.6, restitution=0.1
            ),
        )
        scene.add(self.ball)


@BaseTask.register('SortTask')
class SortTask(BaseTask):
    def load(self):
        super().load()
        from omni.isaac.core.objects import FixedCuboid

        self.wall = FixedCuboid(
            prim_path=self.root_path + '/wall',
            name='wall',
            position=np.array([1.5, 0, 0.2]) + np.array(self.env_offset),
            scale=np.array([0.1, 2.0, 0.4]),
        )

    def is_done(self):
        self.steps += 1
        return self.steps >= self.config.limit


@BaseMetric.register('PushMetric')
class PushMetric(BaseMetric):
    def __init__(self, config, task_config):
        super().__init__(config, task_config)
        self.path = None

    def update(self, obs):
        from omni.isaac.core.prims import RigidPrim

        pos, _ = RigidPrim(f'/World/env_{self.env_id}/objects/ball').get_world_pose()
        self.path = (pos - np.array(self.env_offset)).tolist()

    def calc(self):
        return {'ball': self.path}


env = Env(config)
obs, infos = env.reset()
import carb  # noqa: E402
import omni.physx  # noqa: E402
import omni.timeline  # noqa: E402

timeline = omni.timeline.get_timeline_interface()
assert timeline.is_playing()
query = omni.physx.get_physx_scene_query_interface()
offset = np.array(list(env.runner.current_tasks.values())[1].env_offset)
hit = query.raycast_closest(carb.Float3(*(offset + [1.0, 0, 0.2]).tolist()), carb.Float3(1, 0, 0), 5.0)
assert hit['hit'] and 'wall' in hit['rigidBody'] and abs(hit['distance'] - 0.45) < 1e-3, hit
from omni.isaac.core.utils.bounds import compute_aabb, create_bbox_cache  # noqa: E402

box = compute_aabb(create_bbox_cache(), '/World/env_1/objects/ball')
assert np.allclose(box[3:] - box[:3], 0.1, atol=1e-5), box
while env.simulation_app.is_running():
    obs, _, terminated, _, _ = env.step([{'jetbot': {'move_by_speed': (0.5, 0.0)}}] * 3)
    if any(terminated):
        ids = [k for k, t in enumerate(terminated) if t]
        _, infos = env.reset(ids)
        if not any(infos) and all(terminated):
            break
env.close()
lines = [json.loads(line) for line in open(RESULTS)]
assert len(lines) == 4 and all(abs(each['push']['ball'][1]) < 0.3 and each['push']['ball'][0] > 0.55 for each in lines)
