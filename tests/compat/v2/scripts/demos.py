"""The nine demos of 2.x in their manner (arguments: demo, file for results); two need controllers that are gone."""
# ruff: noqa: I001 - a module of 2.x without a file here
# pyright: basic, reportMissingImports=false, reportArgumentType=false, reportPossiblyUnboundVariable=false
# pyright: reportOptionalMemberAccess=false

import json
import sys
from pathlib import Path

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.gym_env import Env
from internutopia.core.util import has_display
from internutopia.macros import gm
from internutopia_extension import import_extensions
from internutopia_extension.configs.metrics import RecordingMetricCfg
from internutopia_extension.configs.metrics.traveled_distance_metric import TraveledDistanceMetricCfg
from internutopia_extension.configs.objects import DynamicCubeCfg
from internutopia_extension.configs.robots import aliengo, franka, g1, gr1, h1, jetbot, mocap_controlled_franka
from internutopia_extension.configs.tasks import FiniteStepTaskCfg, ManipulationTaskCfg, SingleInferenceTaskCfg
from internutopia_extension.interactions.keyboard import KeyboardInteraction

demo, results = sys.argv[1:]
eyes = [gr1.camera_left_cfg.update(resolution=(32, 18)), gr1.camera_right_cfg.update(resolution=(32, 18))]
path = [(1.0, 0.0, 0.0), (1.0, 1.0, 0.0), (3.0, 4.0, 0.0)]
near = [(0.3, 0.0, 0.0), (0.3, 0.3, 0.0)]
cube = DynamicCubeCfg(name='cube', prim_path='/World/cube', position=(0.4, 0.4, 0.02), scale=(0.04, 0.04, 0.04))
steps = [TraveledDistanceMetricCfg(robot_name='h1'), RecordingMetricCfg(robot_name='h1', fields=['position'])]
grasp = {'max_steps': 1000, 'prompt': 'grasp', 'target': 'cube', 'episode_idx': 0, 'objects': [cube]}
ROBOTS = {
    'aliengo_locomotion': aliengo.AliengoRobotCfg(position=(0, 0, 1.05), controllers=[aliengo.move_to_point_cfg]),
    'gr1_locomotion': gr1.GR1RobotCfg(position=(0, 0, 0.95), controllers=[gr1.move_to_point_cfg], sensors=eyes),
    'g1_locomotion': g1.G1RobotCfg(position=(0, 0, 0.78), controllers=[g1.move_by_speed_cfg]),
    'h1_locomotion': h1.H1RobotCfg(position=(0, 0, 1.05), controllers=[h1.move_along_path_cfg]),
    'h1_traveled_distance': h1.H1RobotCfg(position=(0, 0, 1.05), controllers=[h1.move_along_path_cfg]),
    'jetbot_locomotion': jetbot.JetbotRobotCfg(position=(0, 0, 0), controllers=[jetbot.move_along_path_cfg]),
    'franka_manipulation': franka.FrankaRobotCfg(controllers=[franka.arm_ik_cfg, franka.gripper_cfg]),
    'gr1_teleop': gr1.GR1RobotCfg(position=(0, 0, 0.82), controllers=[gr1.teleop_cfg]),
    'franka_manipulation_mocap_teleop': mocap_controlled_franka.MocapControlledFrankaRobotCfg(
        controllers=[mocap_controlled_franka.teleop_cfg]
    ),
}
kind, fields = SingleInferenceTaskCfg, {}
if demo == 'h1_traveled_distance':
    kind, fields = FiniteStepTaskCfg, {'max_steps': 300, 'metrics': steps}
elif demo == 'franka_manipulation':
    kind, fields = ManipulationTaskCfg, grasp
config = Config(
    simulator=SimConfig(physics_dt=1 / 240, rendering_dt=1 / 240, use_fabric=False, headless=not has_display()),
    metrics_save_path=results,
    task_configs=[
        kind(
            scene_asset_path=gm.ASSET_PATH + '/scenes/empty.usd',
            scene_scale=(0.01, 0.01, 0.01),
            robots=[ROBOTS[demo]],
            **fields,
        )
    ],
)
import_extensions()
env = Env(config)
obs, info = env.reset()
keyboard = KeyboardInteraction() if demo == 'g1_locomotion' else None
down = np.array([0.0, 1.0, 0.0, 0.0])
places, done, i = [], False, 0
while env.simulation_app.is_running() and not done:
    if keyboard is not None:
        forward, back, left, right, turn_left, turn_right = keyboard.get_input()
        action = {g1.move_by_speed_cfg.name: [forward - back, left - right, turn_left - turn_right]}
    elif demo == 'franka_manipulation':
        target = np.array([0.4, 0.0, 0.45]) if i < 500 else np.array([0.4, 0.4, 0.1])
        action = {franka.arm_ik_cfg.name: [target, down]} if i % 500 == 0 else {}
        if i in (300, 800):
            action = {franka.gripper_cfg.name: ['open' if i == 300 else 'close']}
    elif demo in ('aliengo_locomotion', 'gr1_locomotion'):
        action = {'move_to_point': [(1.0, 0.5, 0.0)]}
    else:
        action = {'move_along_path': [near if demo == 'jetbot_locomotion' else path]}
    obs, reward, terminated, truncated, info = env.step(action=action)
    i += 1
    done = terminated or i == 5000 or (keyboard is not None and i == 240)
    states = obs['controllers']
    if not done and any(state.get('finished') for state in states.values()) and demo != 'franka_manipulation':
        done = True
    if demo == 'franka_manipulation' and i in (299, 501, 799):
        hand, fingers = states['arm_ik_controller']['eef_position'], states['gripper_controller']['gripper_pos']
        assert np.allclose(hand, [0.4, 0, 0.45] if i < 600 else [0.4, 0.4, 0.1], atol=0.01), (i, hand)
        assert i != 501 or np.allclose(fingers, 0.04, atol=2e-3), fingers
    places.append(obs['position'])
ways = np.linalg.norm(np.diff(places, axis=0), axis=1)
if demo == 'h1_traveled_distance':
    line = json.loads(Path(results).read_text())
    seen = [each['h1']['position'] for each in line['recording_metric'].values()]
    assert i == 300 and np.allclose(seen, places[:-1], atol=1e-6)  # without the step in which the episode ends
    assert abs(line['traveled_distance_metric'] - ways[:-1].sum()) < 1e-3 and 0.5 < ways.sum() < 1.3
elif demo == 'franka_manipulation':
    assert i == 1001 and env.runner.get_obj('cube').get_mass() > 0
elif keyboard is not None:
    assert np.linalg.norm(places[-1][:2]) < 0.2 and places[-1][2] > 0.6
else:
    last = {'h1_locomotion': (3, 4), 'jetbot_locomotion': (0.3, 0.3)}.get(demo, (1, 0.5))
    assert np.linalg.norm(places[-1][:2] - last) < 0.11 and i < 5000
    assert demo != 'h1_locomotion' or ways.sum() > 2 + 13**0.5 - 0.5
    if demo == 'gr1_locomotion':
        assert all(obs['sensors'][name]['rgba'].shape == (18, 32, 4) for name in ('camera_left', 'camera_right'))
print(demo, i, places[-1])
env.simulation_app.close()
