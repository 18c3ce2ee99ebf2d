"""Robots that keep the actuators of their model, and drives on models that have some."""

from typing import Any

import numpy as np
import pytest

from internutopia.core.robot.articulation_action import ArticulationAction
from internutopia.core.robot.robot import BaseRobot
from internutopia.model.spec import Drives

BODIES = """
<worldbody>
  <body name="a"><joint name="first" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="0.5 0.5 0.5"/>
    <body name="b"><joint name="second" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/></body>
  </body>
</worldbody>"""


@BaseRobot.register('BareOnlyRobot')
class BareOnlyRobot(BaseRobot):
    """Drives only where the model has no actuators."""

    batched = True
    drives = Drives(stiffness=30.0, damping=3.0, only_if_bare=True)


@pytest.fixture
def start(make_env, make_task, make_robot) -> Any:
    def start(model: str, kind: str = 'BareOnlyRobot') -> Any:
        robot = make_robot(model, type=kind, name='robot', prim_path='/robot', controllers=[])
        env = make_env(tasks=[make_task(robots=[robot], max_steps=999)] * 2, env_num=2, sim={'physics_dt': 0.001})
        env.reset()
        return env, env.runner.current_tasks['1'].robots['robot'].articulation

    return start


def test_a_model_keeps_its_actuators(start, write_model):
    model = write_model(
        'own',
        BODIES + '<actuator><motor name="m" joint="first" gear="10" ctrlrange="-1 1"/>'
        '<general name="g" joint="second" gainprm="2"/></actuator>',
    )
    env, articulation = start(model)
    view = articulation.view
    assert view.control_names == ('m', 'g')
    assert view.control_ranges.tolist() == [[-1, 1], [-np.inf, np.inf]]
    view.set_controls(np.array([1]), [[0.2, 0.0]])
    env.step([None] * 2)
    assert articulation.get_joint_efforts().tolist() == pytest.approx([2.0, 0.0])
    assert env.runner.envs[0].task.robots['robot'].articulation.get_joint_efforts().tolist() == [0, 0]
    for call in (lambda: articulation.set_gains([1, 1], [1, 1]), lambda: articulation.get_gains()):
        with pytest.raises(ValueError, match="'robot'.*actuators of its own"):
            call()
    with pytest.raises(ValueError, match='position target for: first, second'):
        articulation.apply_action(ArticulationAction(joint_positions=[0.1, 0.1]))


def test_targets_reach_actuators_of_their_kind(start, write_model):
    model = write_model(
        'servo',
        BODIES + '<actuator><position name="p" joint="second" kp="5"/><motor name="t" joint="first"/></actuator>',
    )
    env, articulation = start(model)
    batch, slot = env.runner.world.batch(1)
    articulation.apply_action(ArticulationAction(joint_positions=[np.nan, 0.4]))
    articulation.apply_action(ArticulationAction(joint_efforts=[0.3], joint_indices=[0]))
    assert batch.ctrl[slot].tolist() == pytest.approx([0.4, 0.3])
    with pytest.raises(ValueError, match='velocity target for: second'):
        articulation.apply_action(ArticulationAction(joint_velocities=[np.nan, 1.0]))


def test_a_bare_model_gets_drives(start, write_model):
    _, articulation = start(write_model('bare', BODIES))
    assert articulation.view.control_names == ()
    assert [g.tolist() for g in articulation.get_gains()] == [[30, 30], [3, 3]]


def test_drives_do_not_inherit_the_models_defaults(start, write_model):
    # limits, gears and sensors of the actuators that the drives replace must not survive in them
    defaults = '<default><motor gear="100" ctrlrange="-0.1 0.1" forcerange="-1 1"/><joint damping="0"/></default>'
    own = '<actuator><motor name="m" joint="second"/></actuator><sensor><actuatorfrc actuator="m"/></sensor>'
    env, articulation = start(write_model('defaults', defaults + BODIES + own), 'ToyRobot')
    articulation.set_joint_efforts([7.0, 0.0])
    env.step([None] * 2)
    assert articulation.get_joint_efforts()[0] == pytest.approx(7.0, rel=0.02)


def test_a_robots_own_options_hold_when_it_keeps_its_actuators(start, write_model):
    weightless = '<option gravity="0 0 -1.62" integrator="RK4"/>'
    own = '<actuator><motor joint="first"/></actuator>'
    env, _ = start(write_model('moon', weightless + BODIES + own))
    model = env.runner.world.model(0)
    assert model.opt.gravity.tolist() == [0, 0, -1.62] and model.opt.integrator == 1
    assert model.opt.timestep == 0.001  # always the config's
    env, _ = start(write_model('moon2', weightless + BODIES), 'ToyRobot')
    assert env.runner.world.model(0).opt.gravity.tolist() == [0, 0, -9.81]
