"""Surroundings of a robot in its file: floors, lights, keyframes, bodies moved by motion capture."""

import logging
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.model.compiled import CompiledScene
from internutopia.model.scene_cache import SceneCache
from internutopia.model.spec import RobotSpec, SceneSpec

# A hand on three slides that a weld draws to a body moved by motion capture, as in robots for teleoperation
CAPTURED = """
<compiler angle="radian"/>
<option gravity="0 0 0"/>
<worldbody>
  <body name="target" mocap="true" pos="0.2 0 0.5"><geom name="ball" size="0.01" contype="0" conaffinity="0"/>
    <site name="mark"/></body>
  <body name="base" pos="0 0 0.5">
    <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <body name="hand" pos="0.2 0 0">
      <joint name="x" type="slide" axis="1 0 0" damping="5"/><joint name="y" type="slide" axis="0 1 0" damping="5"/>
      <joint name="z" type="slide" axis="0 0 1" damping="5"/>
      <geom size="0.05" mass="1"/><site name="palm"/>
    </body>
  </body>
</worldbody>
<equality><weld body1="target" body2="hand" solref="0.02 1"/></equality>
<sensor><framepos name="apart" objtype="site" objname="mark" reftype="site" refname="palm"/></sensor>"""

FURNISHED = """
<asset><texture name="blue" type="skybox" builtin="flat" width="8" height="48" rgb1="0 0 1"/></asset>
<worldbody>
  <light name="lamp" pos="0 0 2"/><camera name="watcher" pos="0 -2 1"/>
  <geom name="ground" type="plane" size="5 5 0.1"/>
  <geom name="pedestal" type="box" size="0.1 0.1 0.1"/>
  <body name="trunk" pos="0 0 1"><freejoint/><geom name="ball" size="0.1" mass="1"/>
    <camera name="eye"/></body>
</worldbody>
<contact><pair geom1="ground" geom2="ball" friction="2 2 0.1 0.1 0.1"/></contact>
<sensor><distance name="height" geom1="ground" geom2="ball" cutoff="9"/></sensor>
<keyframe><key name="up" qpos="0 0 2 1 0 0 0"/></keyframe>"""


def compiled(asset: str, scene: str | None = None, **fields: Any) -> CompiledScene:
    return SceneCache().get(SceneSpec(scene, robots=(RobotSpec('r', asset, **fields),)), 0.01)


def names(model: mujoco.MjModel, kind: str, count: int) -> list[str]:
    return [getattr(model, kind)(i).name.removeprefix('robots/r/') for i in range(count)]


@pytest.fixture
def captured(write_model) -> str:
    return write_model('captured', CAPTURED)


def test_a_captured_body_of_a_fixed_robot_moves_on_its_own(captured):
    """It stands in the env, not below the base, which is moved by motion capture itself."""
    scene = compiled(captured, fixed_base=True, position=(1.0, 2.0, 0.0), orientation=(np.cos(0.5), 0, 0, np.sin(0.5)))
    model = scene.model
    assert names(model, 'body', model.nbody)[1:] == ['robots/r', 'base', 'hand', 'target']
    assert model.body('robots/r/target').parentid[0] == 0 and model.nmocap == 2
    assert set(names(model, 'geom', model.ngeom)) == {'', 'ball'} and model.nsensor == 1 and model.neq == 1
    state = scene.initial_state(scene.source)
    data = mujoco.MjData(model)
    for name, value in state.items():
        getattr(data, name)[:] = value
    mujoco.mj_forward(model, data)
    # turned by 1 rad about the place of the robot, and where the hand is
    expected = [1.0 + 0.2 * np.cos(1.0), 2.0 + 0.2 * np.sin(1.0), 0.5]
    assert data.body('robots/r/target').xpos == pytest.approx(expected)
    assert data.sensordata == pytest.approx([0.0] * 3, abs=1e-12)


def test_what_is_welded_to_it_follows(captured):
    world = MujocoWorld(2, np.zeros((2, 3)), 0.005)
    scene = SceneSpec(robots=(RobotSpec('r', captured, position=(1.0, 0.0, 0.0)),))
    world.load(dict.fromkeys((0, 1), (world.prepare(scene), scene)))
    view = world.articulation('r', 0)
    start = view.get_link_poses(['hand'])[0][:, 0].copy()
    view.body('target').set_poses(np.array([1]), positions=[[1.4, 0.3, 0.6]])
    for _ in range(1000):
        assert not world.step(np.arange(2))
    hand = view.get_link_poses(['hand'])[0][:, 0]
    assert hand[0] == pytest.approx(start[0], abs=1e-3)  # it sags by half a millimetre
    assert hand[1] == pytest.approx([1.4, 0.3, 0.6], abs=1e-2)


def test_a_robot_that_floats_keeps_one_beside_it(write_model):
    floating = CAPTURED.replace('<body name="base" pos="0 0 0.5">', '<body name="base" pos="0 0 0.5"><freejoint/>')
    scene = compiled(write_model('floating', floating), position=(0, 3, 0))
    assert scene.robots['r'].root.name == 'base'
    state = scene.initial_state(scene.source)
    assert state['mocap_pos'].tolist() == [[0.2, 3.0, 0.5]] and state['qpos'][:3].tolist() == [0, 3, 0.5]


def test_the_world_of_a_robot_gives_way_to_the_scene(write_model, models, caplog):
    furnished = write_model('furnished', FURNISHED)
    with caplog.at_level(logging.WARNING, 'internutopia'):
        model = compiled(furnished, models['floor']).model
        compiled(furnished, models['floor'], position=(0, 0, 1))
    assert names(model, 'geom', model.ngeom) == ['scene/ground', 'pedestal', 'ball']
    assert names(model, 'camera', model.ncam) == ['watcher', 'eye']
    assert 'robots/r/lamp' not in names(model, 'light', model.nlight)
    assert (model.npair, model.nsensor, model.nkey) == (0, 0, 0)
    (said,) = (record.getMessage() for record in caplog.records if 'left out' in record.getMessage())
    assert said.startswith(furnished)
    assert said.endswith("floor 'ground', light 'lamp', sky 'blue', keyframe 'up'")


def test_without_a_scene_a_robot_stands_on_its_own_floor(write_model):
    model = compiled(write_model('furnished', FURNISHED)).model
    assert names(model, 'geom', model.ngeom) == ['ground', 'pedestal', 'ball']
    assert names(model, 'camera', model.ncam) == ['watcher', 'eye'] and model.npair == 1


def test_keyframes_are_not_missed_where_the_start_is_given(write_model, caplog):
    arm = '<worldbody><body name="a"><joint name="j"/><geom size=".1"/></body></worldbody>'
    arm += '<keyframe><key name="home" qpos="1"/></keyframe>'
    with caplog.at_level(logging.WARNING, 'internutopia'):
        compiled(write_model('given', arm), joint_positions={'j': 0.5}, fixed_base=True)
        assert not caplog.records
        compiled(write_model('open', arm), fixed_base=True)
    assert [record.getMessage().rpartition(': ')[2] for record in caplog.records] == ["keyframe 'home'"]


def test_a_floor_in_a_body_of_its_own_gives_way_too(write_model, models):
    apart = FURNISHED.replace('<geom name="ground"', '<body name="hall"><geom name="ground"', 1).replace(
        '<geom name="pedestal"', '</body><geom name="pedestal"', 1
    )
    model = compiled(write_model('apart', apart), models['floor'], fixed_base=True).model
    assert names(model, 'geom', model.ngeom) == ['scene/ground', 'pedestal', 'ball']


def test_settings_of_a_file_that_the_scene_has_of_its_own_are_no_conflict(write_model, models, recwarn):
    own = '<size memory="20M" nuserdata="3" nuser_geom="2" nkey="5"/><visual><map znear="0.02"/></visual>' + FURNISHED
    scene = write_model('own', '<size memory="30M"/><worldbody><geom type="plane" size="1 1 1"/></worldbody>')
    model = compiled(write_model('settings', own), scene).model
    assert not recwarn.list
    default = mujoco.MjSpec().compile()
    assert model.vis.map.znear == default.vis.map.znear and model.nuserdata == 0
    assert model.narena == 30 << 20  # a scene knows what it needs
