"""Options of a composed model: what of a scene, of its robots and of the user counts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
from pydantic import ValidationError

from internutopia.config import ContactCfg, SimConfig
from internutopia.model.compilation import compile_scene
from internutopia.model.scene_cache import SceneCache
from internutopia.model.spec import Drives, ObjectSpec, RobotSpec, SceneSpec

INTEGRATOR, CONE, SOLVER = mujoco.mjtIntegrator, mujoco.mjtCone, mujoco.mjtSolver
# Light links with stiff, damped servos: stable at any step if damping is implicit, else at none of the usual ones
WRIST = """
  <worldbody>
    <body name="base" pos="0 0 1"><geom type="box" size="0.1 0.1 0.1"/>
      <body name="arm" pos="0 0 0.2"><joint name="lift" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1"/>
        <body name="tool" pos="0.3 0 0"><joint name="turn" axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 0.05 0 0" size="0.02" mass="0.1"/></body></body></body>
  </worldbody>
  <actuator><position joint="lift" kp="2000" kv="100"/><position joint="turn" kp="500" kv="25"/></actuator>
  <contact><exclude body1="base" body2="arm"/><exclude body1="arm" body2="tool"/></contact>
"""
SERVO = '<actuator><position joint="hinge" kp="10"/></actuator>'


@pytest.fixture
def scene(write_model) -> Callable[[str], str]:
    return lambda option='': write_model('floor', f'{option}<worldbody><geom type="plane" size="9 9 1"/></worldbody>')


@pytest.fixture
def robot(write_model) -> Callable[..., RobotSpec]:
    """Makes a robot of one hinge that keeps its actuator, if it has one."""

    def robot(option: str = '', name: str = 'r', joint: str = 'hinge', actuator: bool = True) -> RobotSpec:
        hinge = f'<worldbody><body name="link"><joint name="{joint}"/><geom size="0.1"/></body></worldbody>'
        model = write_model(name, option + hinge + SERVO.replace('hinge', joint) * actuator)
        return RobotSpec(name, model, drives=Drives(stiffness=10.0, only_if_bare=True))

    return robot


def options(contact: dict[str, Any] | None = None, **fields: Any) -> Any:
    return compile_scene(SceneSpec(**fields), 0.005, ContactCfg(**(contact or {}))).model.opt


@pytest.mark.parametrize('timestep', [1 / 240, 1 / 500])
def test_a_robot_that_holds_still_alone_does_so_in_any_scene(write_model, scene, timestep):
    wrist = RobotSpec('wrist', write_model('wrist', WRIST), drives=Drives(only_if_bare=True))
    for asset in (None, scene(), scene('<option integrator="Euler"/>')):
        compiled = compile_scene(SceneSpec(asset, robots=(wrist,)), timestep)
        assert compiled.model.opt.integrator == INTEGRATOR.mjINT_IMPLICITFAST
        data = mujoco.MjData(compiled.model)
        mujoco.mj_step(compiled.model, data, round(2.0 / timestep))
        # it sags by what gravity does to a spring of 2000 N m/rad, and moves no more
        torque = (1.0 * 0.15 + 0.1 * 0.325) * 9.81
        assert data.qpos[0] == pytest.approx(torque / 2000, rel=0.05) and abs(data.qvel).max() < 1e-6


def test_a_robots_wishes_survive_in_a_scene(scene, robot):
    asked = '<option cone="elliptic" impratio="10" noslip_iterations="3" tolerance="1e-10" ls_iterations="80"/>'
    for driven in (False, True):
        opt = options(asset=scene(), robots=(robot(asked, actuator=not driven),))
        assert (opt.cone, opt.impratio, opt.noslip_iterations, opt.tolerance, opt.ls_iterations) == (
            1,
            10,
            3,
            1e-10,
            80,
        )


def test_the_stronger_of_two_counts(scene, robot):
    one = robot('<option impratio="10" iterations="5" integrator="RK4" solver="CG"/>', 'one')
    two = robot('<option impratio="3" integrator="implicit" solver="PGS"/>', 'two')
    opt = options(asset=scene('<option solver="PGS" iterations="50" impratio="5"/>'), robots=(one, two))
    assert (opt.impratio, opt.iterations) == (10, 50)
    assert (opt.solver, opt.integrator) == (SOLVER.mjSOL_CG, INTEGRATOR.mjINT_IMPLICIT)


def test_what_a_robot_does_not_say_is_no_wish(scene, robot):
    opt = options(asset=scene('<option solver="CG" iterations="20" tolerance="1e-4"/>'), robots=(robot(),))
    assert (opt.solver, opt.iterations, opt.tolerance) == (SOLVER.mjSOL_CG, 20, 1e-4)


def test_flags(scene, robot):
    flag = mujoco.mjtDisableBit
    one = robot('<option><flag eulerdamp="disable" warmstart="disable" contact="disable"/></option>', 'one')
    two = robot('<option><flag eulerdamp="disable"/></option>', 'two')
    physical = scene('<option><flag limit="disable"/></option>')
    kept = int(flag.mjDSBL_EULERDAMP | flag.mjDSBL_WARMSTART | flag.mjDSBL_LIMIT)
    assert options(asset=physical, robots=(one,)).disableflags == kept
    kept = int(flag.mjDSBL_EULERDAMP | flag.mjDSBL_LIMIT)  # both robots agree on it, and the scene says the other
    assert options(asset=physical, robots=(one, two)).disableflags == kept


def test_what_is_lost_is_told_once_by_name(scene, robot, caplog):
    option = '<option gravity="0 0 -1.62" solver="CG" cone="elliptic"><flag contact="disable"/></option>'
    moon = robot(option, 'moon_walker')
    with caplog.at_level(logging.WARNING, 'internutopia'):
        for _ in range(2):
            options(asset=scene(), robots=(moon,))
    assert [record.getMessage() for record in caplog.records] == [
        "robot 'moon_walker': options of its model that are ignored in this scene: disable contact, "
        'gravity 0 0 -1.62 (it is 0 0 -9.81), solver cg (it is newton)'
    ]


def test_the_user_has_the_last_word(scene, robot):
    model = scene('<option cone="elliptic" impratio="50" noslip_iterations="9"/>')
    said = {
        'integrator': 'Euler',
        'cone': 'pyramidal',
        'impratio': 2.0,
        'noslip_iterations': 0,
        'solver': 'PGS',
        'iterations': 7,
        'ls_iterations': 8,
        'tolerance': 1e-5,
    }
    opt = options(said, asset=model, robots=(robot(joint='gripper_joint'),))
    assert (opt.integrator, opt.cone, opt.solver) == (INTEGRATOR.mjINT_EULER, CONE.mjCONE_PYRAMIDAL, SOLVER.mjSOL_PGS)
    assert (opt.impratio, opt.noslip_iterations, opt.iterations, opt.ls_iterations, opt.tolerance) == (2, 0, 7, 8, 1e-5)


def test_mistakes_in_a_contact_config_are_refused():
    for wrong, message in [
        ({'cone': 'round'}, "'pyramidal' or 'elliptic'"),
        ({'impratio': 0.0}, 'greater than 0'),
        ({'noslip_iteration': 3}, "no field 'noslip_iteration'; did you mean 'noslip_iterations'"),
        ({'iterations': 0}, 'greater than or equal to 1'),
    ]:
        with pytest.raises(ValidationError, match=message):
            SimConfig(contact=wrong)  # pyright: ignore[reportArgumentType] - as a mapping from YAML


def test_another_contact_config_is_another_model(scene):
    cache, spec = SceneCache(), SceneSpec(scene())
    plain = cache.get(spec, 0.005)
    assert cache.get(spec, 0.005, ContactCfg()) is not cache.get(spec, 0.005, ContactCfg(iterations=5))
    assert cache.get(spec, 0.005, ContactCfg(iterations=5)).model.opt.iterations == 5
    assert plain.model.opt.iterations == 100


@pytest.mark.parametrize('joint', ['panda_finger_joint1', 'gripper', 'left_jaw', 'inner_knuckle_joint'])
def test_a_gripper_gets_contacts_that_hold(scene, robot, joint):
    opt = options(asset=scene(), robots=(robot(joint=joint),))
    assert (opt.integrator, opt.cone, opt.impratio) == (INTEGRATOR.mjINT_DISCRETE, CONE.mjCONE_ELLIPTIC, 100)
    opt = options(asset=scene(), robots=(robot(),))
    assert (opt.integrator, opt.cone, opt.impratio) == (INTEGRATOR.mjINT_EULER, CONE.mjCONE_PYRAMIDAL, 1)


def test_loose_things_get_a_friction_cone_that_holds_them(scene, robot, write_model):
    thing = '<body name="thing" pos="0 0 1"><freejoint/><geom size="0.1"/></body>'
    crates = write_model('crates', f'<worldbody><geom type="plane" size="9 9 1"/>{thing}</worldbody>')
    held = CONE.mjCONE_ELLIPTIC, 100.0
    for opt in (options(asset=crates, robots=(robot(),)), options(asset=scene(), objects=(ObjectSpec('cube'),))):
        assert (opt.cone, opt.impratio) == held and opt.integrator == INTEGRATOR.mjINT_EULER
    fixed = ObjectSpec('cube', dynamic=False)
    # robots alone do as they were trained: among things that do not move, and as their own file says
    walker = RobotSpec('walker', write_model('walker', f'<worldbody>{thing}</worldbody>'))
    for opt in (options(asset=scene(), objects=(fixed,), robots=(walker,)), options(robots=(walker,))):
        assert (opt.cone, opt.impratio) == (CONE.mjCONE_PYRAMIDAL, 1.0)
    asked: dict[str, Any] = {'cone': 'pyramidal', 'impratio': 1.0}
    opt = options(asked, asset=crates)
    assert (opt.cone, opt.impratio) == (CONE.mjCONE_PYRAMIDAL, 1.0)


def test_where_something_bounces_a_gripper_does_not_change_the_integrator(scene, robot, write_model):
    ball = write_model(
        'ball', '<worldbody><body><geom size="0.1" solref="-100 -300" solimp="0.99 0.99"/></body></worldbody>'
    )
    opt = options(asset=scene(), robots=(robot(joint='finger'),), objects=(ObjectSpec('ball', ball),))
    assert (opt.integrator, opt.cone, opt.impratio) == (INTEGRATOR.mjINT_EULER, CONE.mjCONE_ELLIPTIC, 100)


@pytest.mark.parametrize('timestep', [1 / 240, 1 / 500])
def test_a_light_box_bears_a_hundred_times_its_weight(scene, timestep):
    light = ObjectSpec('light', scale=(0.2, 0.2, 0.2), position=(0, 0, 0.1), mass=1.0)
    heavy = ObjectSpec('heavy', scale=(0.2, 0.2, 0.2), position=(0, 0, 0.3), mass=100.0)
    spec = SceneSpec(scene(), objects=(light, heavy))
    compiled = compile_scene(spec, timestep)
    data = mujoco.MjData(compiled.model)
    data.qpos[:] = compiled.initial_state(spec)['qpos']
    mujoco.mj_step(compiled.model, data, round(4.0 / timestep))
    assert np.allclose(data.qpos[[2, 9]], [0.1, 0.3], atol=2e-3)
