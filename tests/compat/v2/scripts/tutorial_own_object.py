"""Objects of the script's own: a crate and a sign, which their classes add to the scene."""
# pyright: reportArgumentType=false, reportCallIssue=false, reportMissingImports=false, reportIncompatibleVariableOverride=false, reportAttributeAccessIssue=false

import numpy as np

from internutopia.core.config import Config, ObjectCfg, SimConfig
from internutopia.core.object import BaseObject
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.scene.scene import IScene
from internutopia.core.util import has_display
from internutopia.core.vec_env import Env
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg


class CrateCfg(ObjectCfg):
    type: str = 'Crate'
    color: tuple = (0.5, 0.3, 0.1)
    weight: float = 2.0


@BaseObject.register('Crate')
class Crate(BaseObject):
    def __init__(self, config: CrateCfg, scene: IScene):
        super().__init__(config, scene)
        self._config = config

    def set_up_to_scene(self, scene: IScene):
        from omni.isaac.core.objects import DynamicCuboid

        self.cube = DynamicCuboid(
            prim_path=self._config.prim_path,
            name=self._config.name,
            position=np.array(self._config.position),
            orientation=np.array(self._config.orientation),
            scale=np.array(self._config.scale),
            color=np.array(self._config.color),
            mass=self._config.weight,
        )
        scene.add(self.cube)


@BaseObject.register('Sign')
class Sign(BaseObject):
    def set_up_to_scene(self, scene: IScene):
        sign = IRigidBody.create(
            prim_path=self.config.prim_path,
            usd_path=gm.ASSET_PATH + '/robots/jetbot/jetbot.usd',
            name=self.config.name,
            position=self.config.position,
            mass=0.5,
        )
        scene.add(sign)


def task(height: float) -> FiniteStepTaskCfg:
    return FiniteStepTaskCfg(
        scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
        scene_scale=(0.01, 0.01, 0.01),
        robots=[JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg])],
        objects=[
            CrateCfg(name='crate', prim_path='/crate', position=(0.5, 0.1, height), scale=(0.2, 0.2, 0.2)),
            ObjectCfg(name='sign', type='Sign', prim_path='/World/sign', position=(0.0, 2.0, 0.1)),
        ],
        max_steps=240,
    )


config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    env_num=2,
    env_offset_size=10,
    metrics_save_path='none',
    task_configs=[task(height) for height in (0.1, 0.4, 0.4)],
)
print(config.model_dump_json(indent=4))
import_extensions()
env = Env(config)
env.reset()
assert env.runner.get_obj('crate').get_mass() == 2.0

for episodes in (2, 1):
    heights = []
    while True:
        _, _, terminated, _, _ = env.step([{'jetbot': {'move_by_speed': [0.0, 0.0]}}] * 2)
        heights.append(
            [each.objects['crate'].cube.get_world_pose()[0][2] for each in env.runner.current_tasks.values()]
        )
        if all(terminated):
            break
    for each in env.runner.current_tasks.values():
        offset = np.array(each.env_offset)
        crate, sign = each.objects['crate'], each._scene.get(each.objects['sign'].name)
        np.testing.assert_allclose(crate.cube.get_world_pose()[0] - offset, [0.5, 0.1, 0.1], atol=1e-3)
        np.testing.assert_allclose(sign.get_pose()[0][:2], [0.0, 2.0], atol=0.02)
    fallen = 0.4 - np.array(heights)[11, -1]
    np.testing.assert_allclose(fallen, 0.5 * 9.81 * (12 / 240) ** 2, rtol=0.1)  # from 0.4 m, in the last of them
    env.reset([1] if episodes == 2 else None)
env.close()
