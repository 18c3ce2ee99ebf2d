"""`GenericRobot`: what drives a model without a class of its own."""

from typing import Any

import numpy as np
import pytest

from internutopia_extension.configs.controllers import ActuatorControllerCfg, JointControllerCfg, RecoverControllerCfg
from internutopia_extension.configs.robots.generic import GenericRobotCfg

# A slide with a motor that can do 5 N through a gear of 2, and a free hinge on it
CART = """
<compiler angle="radian"/>
<option gravity="0 0 0"/>
<worldbody><body name="base"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body name="cart"><joint name="slide" type="slide" axis="1 0 0"/><geom type="box" size=".1 .1 .1" mass="1"/>
    <body name="pole"><joint name="hinge" axis="0 0 1"/><geom type="box" size=".1 .1 .1" mass="1"/></body></body>
</body></worldbody>
<actuator>{actuators}</actuator>"""
MOTOR = '<motor name="m" joint="slide" gear="2" ctrlrange="-2.5 2.5"/>'
SERVO = '<position name="servo" joint="slide" kp="50" kv="10"/>'
JOINTS = JointControllerCfg(name='joints', joint_names=['slide'])
RAW = ActuatorControllerCfg()
RECOVER = RecoverControllerCfg(name='recover', recover_height=0.5)


@pytest.fixture
def start(run, write_model) -> Any:
    """Starts two envs with the cart in them; returns the env and the robot's articulation in the second."""

    def start(actuators: str, *controllers: Any, **fields: Any) -> Any:
        model = write_model('cart', CART.format(actuators=actuators))
        place = {'position': (0.0, 0.0, 1.0), 'fixed_base': True}
        robot = GenericRobotCfg(usd_path=model, **place, controllers=list(controllers), **fields)
        env = run(robot, env_num=2, substeps=1)
        return env, env.runner.envs[1].task.robots['robot'].articulation

    return start


def move(env: Any, steps: int = 1, controller: str = 'joints', target: float = 0.5) -> None:
    for _ in range(steps):
        env.step([{'robot': {controller: [[target]]}}] * 2)


def test_motors_give_way_to_drives_for_a_joint_controller(start):
    env, articulation = start(MOTOR, JOINTS, stiffness=40.0, damping=9.0)
    assert articulation.view.control_names == ()
    stiffness, damping = articulation.get_gains()
    assert stiffness.tolist() == [40, 0] and damping.tolist() == [9, 0]  # nothing drives the hinge
    move(env)
    assert articulation.get_joint_efforts().tolist() == [5.0, 0.0]  # of 20 N, what the motor can do
    move(env, steps=600)
    assert articulation.get_joint_positions()[0] == pytest.approx(0.5, abs=1e-3)


def test_the_effort_limit_of_the_config_counts(start):
    env, articulation = start(MOTOR, JOINTS, stiffness=40.0, damping=9.0, effort_limit=3.0)
    move(env)
    assert articulation.get_joint_efforts().tolist() == [3.0, 0.0]
    env, articulation = start('', JOINTS, effort_limit={'slide': 0.5})
    assert articulation.get_gains()[0] == pytest.approx([2 * 9.81 / 0.01, 100])  # what they are sized for
    move(env)
    assert articulation.get_joint_efforts()[0] == 0.5


def test_gains_by_joint_reach_joints_without_a_motor(start):
    _, articulation = start(MOTOR, JOINTS, stiffness={'hinge': 3.0})
    assert [gains.tolist() for gains in articulation.get_gains()] == [[0, 3], [10, 0]]


@pytest.mark.parametrize('controllers', [(), (RAW,), (RECOVER,), (RAW, JOINTS)], ids=str)
def test_motors_are_kept_where_nobody_asks_for_drives(start, controllers):
    _, articulation = start(MOTOR, *controllers)
    assert articulation.view.control_names == ('m',)


def test_settings_alone_ask_for_drives(start):
    _, articulation = start(MOTOR, damping=2.0)
    assert articulation.view.control_names == () and articulation.get_gains()[1].tolist() == [2, 0]


def test_sub_controllers_ask_for_drives_too(start):
    _, articulation = start(MOTOR, RECOVER.update(sub_controllers=[JOINTS]))
    assert articulation.view.control_names == ()


def test_servos_of_the_model_are_kept(start):
    env, articulation = start(SERVO, JOINTS)
    assert articulation.view.control_names == ('servo',)
    move(env, steps=600)
    assert articulation.get_joint_positions()[0] == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ('actuators', 'fields', 'message'),
    [
        (SERVO, {'stiffness': 5.0}, r"'robot': stiffness would have no effect: .*cart\.xml brings .*kept \(servo\)"),
        (SERVO, {'damping': 1.0, 'effort_limit': 2.0}, 'damping and effort_limit would have no effect'),
        (MOTOR, {'stiffness': 5.0, 'controllers': [RAW]}, r'stiffness would have no effect: .*kept \(m\)'),
        (MOTOR + SERVO.replace('servo', 's2'), {'stiffness': 5.0}, r'no effect: .*kept \(m, s2\)'),
        ('', {'stiffness': {'slid': 5.0}}, "stiffness is given for a joint 'slid' that .*; did you mean 'slide'"),
        (MOTOR, {'effort_limit': {'pole': 5.0}}, "effort_limit is given for a joint 'pole' .*known: 'hinge', 'slide'"),
    ],
)
def test_settings_without_effect_are_errors(run, write_model, actuators, fields, message):
    model = write_model('cart', CART.format(actuators=actuators))
    with pytest.raises(ValueError, match=message):
        run(GenericRobotCfg(usd_path=model, fixed_base=True, **fields))


def test_self_collisions_of_the_config(run, write_model):
    rail = """<worldbody><body name="rail"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="a" pos="-.5 0 0"><joint name="a" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
      <body name="b" pos=".5 0 0"><joint name="b" type="slide" axis="1 0 0"/><geom size=".1" mass="1"/></body>
    </body></worldbody>"""
    both = JointControllerCfg(name='both', joint_names=['a', 'b'])
    gaps = []
    for flag in (None, False):
        place = {'usd_path': write_model('rail', rail), 'position': (0.0, 0.0, 1.0), 'fixed_base': True}
        robot = GenericRobotCfg(**place, self_collisions=flag, controllers=[both], damping=20.0)
        env = run(robot, env_num=1, substeps=600)
        env.step([{'robot': {'both': [[0.5, -0.5]]}}])
        positions = env.runner.envs[0].task.robots['robot'].articulation.get_joint_positions()
        gaps.append(1.0 + np.diff(positions)[0])
    assert gaps == pytest.approx([0.2, 0.0], abs=0.02)
