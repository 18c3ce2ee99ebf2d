"""Two H1 of a user's own class walk side by side, held to one box by joints that are made while they stand.

A weak rope to a third box breaks at the first pull.
"""
# pyright: reportArgumentType=false, reportCallIssue=false, reportMissingImports=false
# pyright: reportPossiblyUnboundVariable=false, reportAttributeAccessIssue=false

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.config.robot import RobotCfg
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.scene.scene import IScene
from internutopia.core.util.joint import create_joint
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.robots.h1 import H1Robot


@BaseRobot.register('PorterH1')
class PorterH1(H1Robot):
    """Counts its steps and says how far its torso is from the box."""

    def __init__(self, config: RobotCfg, scene: IScene):
        super().__init__(config, scene)
        self.scene = scene
        self.count = 0

    def post_reset(self):
        super().post_reset()
        self.torso = self._rigid_body_map[self.config.prim_path + '/torso_link']

    def apply_action(self, action):
        self.count += 1
        super().apply_action(action)

    def get_obs(self):
        obs = super().get_obs()
        box = self.scene.get('box').get_pose()[0]
        obs['gap'] = box - self.torso.get_pose()[0]
        obs['count'] = self.count
        return obs


porters = [
    H1RobotCfg(
        type='PorterH1',
        name=f'porter_{side}',
        prim_path=f'/porter_{side}',
        position=(0.0, y, 1.05),
        controllers=[move_by_speed_cfg],
    )
    for side, y in (('left', 0.6), ('right', -0.6))
]
box = DynamicCubeCfg(name='box', prim_path='/box', position=(0.45, 0.0, 1.0), scale=(0.1, 0.8, 0.1), mass=1.0)
anchor = DynamicCubeCfg(name='anchor', prim_path='/anchor', position=(0.45, 2.5, 0.1), scale=(0.2, 0.2, 0.2), mass=50.0)
config = Config(
    simulator=SimConfig(physics_dt=1 / 48, rendering_dt=1 / 48, use_fabric=False),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=porters,
            objects=[box, anchor],
        )
    ],
)
import_extensions()
env = Env(config)
env.reset()
names = [porter.name for porter in porters]
root = '/World/env_0'

stand = [{name: {move_by_speed_cfg.name: [0.0, 0.0, 0.0]} for name in names}]
create_joint(f'{root}/hang', 'FixedJoint', body0=f'{root}/objects/box')  # until both hold it
for _ in range(10):
    obs, *_ = env.step(stand)
start = env.runner.get_obj('box').get_world_pose()[0]
assert abs(start - np.array([0.45, 0.0, 1.0])).max() < 1e-3, start

for name in names:
    create_joint(f'{root}/hold_{name}', 'SphericalJoint', f'{root}/robots/{name}/torso_link', f'{root}/objects/box')
create_joint(f'{root}/rope', 'SphericalJoint', f'{root}/objects/anchor', f'{root}/objects/box', break_force=40.0)
create_joint(f'{root}/hang', 'FixedJoint', body0=f'{root}/objects/box', enabled=False)
walk = [{name: {move_by_speed_cfg.name: [0.5, 0.0, 0.0]} for name in names}]
for _ in range(192):
    obs, *_ = env.step(walk)
end, _ = env.runner.get_obj('box').get_world_pose()
pelvis = np.array([obs[0][name]['position'] for name in names])
print('box', start, '->', end, 'porters', pelvis.tolist(), 'gaps', [obs[0][name]['gap'].tolist() for name in names])
assert all(obs[0][name]['count'] == 10 + 192 for name in names)
assert (pelvis[:, 2] > 0.8).all(), 'a porter fell'
assert 1.0 < end[0] - start[0] < 2.5  # 0.5 m/s for 4 s, less the start
assert abs(pelvis[:, 0].mean() + 0.45 - end[0]) < 0.3
moved = env.runner.get_obj('anchor').get_world_pose()[0] - np.array([0.45, 2.5, 0.1])
assert np.linalg.norm(moved) < 0.1, moved  # the rope broke
env.close()
