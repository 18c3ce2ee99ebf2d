"""Aliengo follows a marker that the script moves, by a controller and a sensor of its own; a drum is thrown up."""
# pyright: basic, reportMissingImports=false, reportArgumentType=false, reportIncompatibleVariableOverride=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportIncompatibleMethodOverride=false
# pyright: reportOptionalMemberAccess=false

from collections import OrderedDict

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.config.robot import ControllerCfg
from internutopia.core.config.sensor import SensorCfg
from internutopia.core.gym_env import Env
from internutopia.core.robot.articulation import ArticulationAction
from internutopia.core.robot.controller import BaseController
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.robot.robot import BaseRobot
from internutopia.core.sensor.sensor import BaseSensor
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.objects import DynamicCubeCfg, VisualCubeCfg
from internutopia_extension.configs.robots.aliengo import AliengoRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import SingleInferenceTaskCfg
from internutopia_extension.robots.aliengo import AliengoRobot


class FollowCfg(ControllerCfg):
    name: str = 'follow'
    type: str = 'FollowController'
    gain: float = 0.8


class TiltCfg(SensorCfg):
    name: str = 'tilt'
    type: str = 'TiltSensor'


config = Config(
    simulator=SimConfig(
        physics_dt=1 / 48, rendering_dt=1 / 48, use_fabric=False, headless=not has_display(), webrtc=False
    ),
    task_configs=[
        SingleInferenceTaskCfg(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[
                AliengoRobotCfg(
                    type='Follower',
                    position=(0, 0, 0.5),
                    controllers=[FollowCfg(sub_controllers=[move_by_speed_cfg])],
                    sensors=[TiltCfg()],
                )
            ],
            objects=[
                VisualCubeCfg(
                    name='goal', prim_path='/goal', position=(1.5, 0.5, 0.1), scale=(0.1, 0.1, 0.1), color=[0, 1, 0]
                ),
                DynamicCubeCfg(
                    name='load', prim_path='/load', position=(-1.0, 0, 0.2), scale=(0.2, 0.2, 0.2), color=(1, 0, 0)
                ),
            ],
        )
    ],
)
import_extensions()


@BaseRobot.register('Follower')
class Follower(AliengoRobot):
    def get_obs(self) -> OrderedDict:
        obs = super().get_obs()
        obs['trunk_speed'] = self.get_robot_base().get_linear_velocity()
        return self._make_ordered(obs)


@BaseController.register('FollowController')
class FollowController(BaseController):
    def forward(self, goal) -> ArticulationAction:
        from omni.isaac.core.utils.rotations import quat_to_euler_angles

        p, q = self.robot.articulation.get_world_pose()
        yaw = quat_to_euler_angles(q)[2]
        d = np.array(goal)[:2] - p[:2]
        bearing = (np.arctan2(d[1], d[0]) - yaw + np.pi) % (2 * np.pi) - np.pi
        self.dist = float(np.linalg.norm(d))
        v = np.clip(self.config.gain * self.dist, 0, 0.8) * max(0.0, np.cos(bearing))
        return self.sub_controllers[0].forward(
            forward_speed=v, rotation_speed=float(np.clip(2 * bearing, -1, 1)), lateral_speed=0.0
        )

    def action_to_control(self, action):
        return self.forward(action[0])

    def get_obs(self):
        return self._make_ordered(OrderedDict(distance=getattr(self, 'dist', np.inf)))


@BaseSensor.register('TiltSensor')
class TiltSensor(BaseSensor):
    def get_data(self) -> OrderedDict:
        from omni.isaac.core.utils.rotations import quat_to_rot_matrix

        _, q = self._robot.articulation.get_world_pose()
        return self._make_ordered(OrderedDict(up=float(quat_to_rot_matrix(q)[2, 2])))


env = Env(config)
obs, info = env.reset()
env.warm_up(2)
import omni.kit.app  # noqa: E402
from omni.isaac.core import World  # noqa: E402
from omni.isaac.core.articulations import ArticulationView  # noqa: E402
from omni.isaac.core.objects import DynamicCylinder, VisualSphere  # noqa: E402
from omni.isaac.core.prims import RigidPrimView, XFormPrim  # noqa: E402
from omni.isaac.core.utils.prims import is_prim_path_valid  # noqa: E402
from omni.isaac.core.utils.stage import get_current_stage  # noqa: E402

world = World.instance()
assert abs(world.get_physics_dt() - 1 / 48) < 1e-9
ticks = []
world.add_physics_callback('tick', lambda dt: ticks.append(dt))
marker = VisualSphere(
    prim_path='/World/env_0/marker',
    name='marker',
    position=np.array([1.5, 0.5, 0.6]),
    radius=0.1,
    color=np.array([1.0, 1.0, 0]),
)
world.scene.add(marker)
drum = world.scene.add(
    DynamicCylinder(
        prim_path='/World/env_0/drum', name='drum', position=np.array([-1, 1, 0.3]), radius=0.15, height=0.5, mass=3.0
    )
)
assert world.scene.get_object('drum') is not None
stage = get_current_stage()
assert is_prim_path_valid('/World/env_0/marker') and stage.GetPrimAtPath('/World/env_0/drum').IsValid()
goal = np.array([1.5, 0.5])
view = ArticulationView(prim_paths_expr='/World/env_*/robots/aliengo')
view.initialize()
assert view.num_dof == 12 and view.get_joint_positions().shape == (1, 12), view.dof_names
n = 0
while env.simulation_app.is_running():
    n += 1
    marker.set_world_pose(position=np.array([*goal, 0.6 + 0.1 * np.sin(n / 8)]))
    obs, *_ = env.step(action={'follow': [goal]})
    if obs['controllers']['follow']['distance'] < 0.3:
        break
    assert n < 300, obs['position']
print('reached after', n, obs['position'], obs['sensors'], obs['trunk_speed'])
assert obs['sensors']['tilt']['up'] > 0.9
assert len(ticks) == n
assert np.allclose(XFormPrim('/World/env_0/marker').get_world_pose()[0][:2], goal, atol=1e-5)
pos, _ = drum.get_world_pose()
assert np.allclose(pos, [-1, 1, 0.25], atol=2e-3), pos
app = omni.kit.app.get_app()
before = drum.get_world_pose()[0][2]
drum.set_linear_velocity(np.array([0, 0, 2.0]))
for _ in range(12):
    app.update()
h = drum.get_world_pose()[0][2] - before
assert abs(h - (2.0 * 0.25 - 0.5 * 9.81 * 0.25**2)) < 8e-3, h
loads = RigidPrimView('/World/env_*/objects/load')
loads.set_masses(np.array([2.0]))
assert np.allclose(loads.get_masses(), 2.0)
body = IRigidBody.create(prim_path='/World/env_0/objects/load', name='load')
assert abs(body.get_mass() - 2.0) < 1e-6
world.pause()
h = drum.get_world_pose()[0][2]
world.step(render=False)
assert drum.get_world_pose()[0][2] == h
world.play()
world.remove_physics_callback('tick')
world.scene.remove_object('drum')
assert world.scene.get_object('drum') is None
assert marker.get_radius() == 0.1 and World.instance() is world
env.close()
env.simulation_app.close()
