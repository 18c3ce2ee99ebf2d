"""Your own robot from a model file, without a robot class: a cart that balances a pole in eight envs.

A model with actuators keeps them; an `ActuatorController` takes their controls as the action.
"""

import tempfile
from pathlib import Path

import numpy as np

from internutopia import Config, Env, SimConfig, TaskCfg
from internutopia_extension import import_extensions
from internutopia_extension.configs.controllers import ActuatorControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

CART_POLE = """
<mujoco model="cart_pole">
  <worldbody>
    <body name="cart" pos="0 0 1">
      <joint name="slide" type="slide" axis="1 0 0" range="-1.8 1.8" limited="true"/>
      <geom type="box" size="0.2 0.12 0.08" mass="1"/>
      <body name="pole">
        <joint name="hinge" type="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 1" size="0.04" mass="0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor name="force" joint="slide" ctrlrange="-30 30" ctrllimited="true"/>
  </actuator>
</mujoco>
"""
GAINS = np.array([5.0, 60.0, 8.0, 14.0])  # N/m, N/rad, N s/m, N s/rad: for position, angle and their rates

with tempfile.TemporaryDirectory() as folder:
    model = Path(folder) / 'cart_pole.xml'
    model.write_text(CART_POLE)
    cart = GenericRobotCfg(name='cart', usd_path=str(model), controllers=[ActuatorControllerCfg(name='force')])
    tasks: list[TaskCfg] = [
        FiniteStepTaskCfg(robots=[cart.update(initial_joint_positions={'hinge': tilt})], max_steps=500)
        for tilt in np.linspace(-0.3, 0.3, 8).tolist()  # rad
    ]
    config = Config(simulator=SimConfig(physics_dt=0.01), env_num=8, task_configs=tasks, metrics_save_path='none')

    import_extensions()
    env = Env(config)
    obs, _ = env.reset()
    while env.simulation_app.is_running():
        state = np.array([[*o['cart']['joint_positions'], *o['cart']['joint_velocities']] for o in obs])
        obs, *_ = env.step([{'cart': {'force': [force]}} for force in state @ GAINS])
    env.close()

angles = np.array([o['cart']['joint_positions'][1] for o in obs])
print(f'after 5 s the poles lean by at most {np.abs(angles).max():.5f} rad')
assert np.abs(angles).max() < 0.01
