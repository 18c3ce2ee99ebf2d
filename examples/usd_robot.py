"""A robot from a USD file: its joints, and the drives that the file gives them, without a class for it."""

from pathlib import Path

import numpy as np

from internutopia import Config, Env, SimConfig
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import JointControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

JOINTS = ['shoulder', 'elbow']

import_extensions()
arm = GenericRobotCfg(
    name='arm',
    prim_path='/arm',
    usd_path=str(Path(__file__).with_name('arm.usda')),
    controllers=[JointControllerCfg(name='joints', joint_names=JOINTS)],
)
task = FiniteStepTaskCfg(robots=[arm], max_steps=600)
env = Env(Config(simulator=SimConfig(physics_dt=1 / 240), task_configs=[task], metrics_save_path='none'))
obs, _ = env.reset()

for _ in range(300):  # left alone, the drives go to the targets in the file
    obs, *_ = env.step([None])
print('joints [deg]:', np.degrees(obs[0]['arm']['joint_positions']).round(1))
assert np.allclose(obs[0]['arm']['joint_positions'], np.radians([0, 45]), atol=0.02)

for _ in range(300):
    obs, *_ = env.step([{'arm': {'joints': [[0.5, -0.5]]}}])
assert np.allclose(obs[0]['arm']['joint_positions'], [0.5, -0.5], atol=0.02)

stiffness, _ = env.runner.current_tasks['0'].robots['arm'].articulation.get_gains()
print('stiffness [N m/rad]:', stiffness.round(1))
env.close()
