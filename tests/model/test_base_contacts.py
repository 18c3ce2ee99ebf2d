"""Contacts between a fixed base and the links on it: those of bare MuJoCo with the same file."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.model.compiled import CompiledScene
from internutopia.model.scene_cache import SceneCache
from internutopia.model.spec import ObjectSpec, RobotSpec, SceneSpec

DT = 0.002
# A lid that is half open and falls shut onto the base; a knob on it swings through the lid
CHEST = """
<worldbody>
  {world}
  <body name="base">{base}
    <body name="lid" pos="-0.2 0 0.07"><joint name="lid" axis="0 -1 0" damping="0.01" pos="0 0 0"/>
      <geom name="lid" type="box" size="0.2 0.2 0.01" pos="0.2 0 0" mass="1" {bits}/>
      <body name="knob" pos="0.2 0 0.03"><joint name="knob" axis="0 1 0" damping="0.01"/>
        <geom name="knob" type="box" size="0.01 0.01 0.02" pos="0.02 0 -0.01" mass="0.1" {bits}/></body></body></body>
</worldbody>
{contact}"""
BOX = '<geom name="base" type="box" size="0.2 0.2 0.05" {}/>'
CHESTS = {
    'a base': {'base': BOX.format('')},
    'a part that is fixed to the base': {'base': f'<body name="part">{BOX.format("")}</body>'},
    'shapes of the world': {'world': BOX.format(''), 'base': ''},
    'an exclude of others': {
        'base': BOX.format(''),
        'contact': '<contact><exclude body1="base" body2="knob"/></contact>',
    },
    'an exclude of both': {'base': BOX.format(''), 'contact': '<contact><exclude body1="base" body2="lid"/></contact>'},
    'bits that agree': {'base': BOX.format('contype="2" conaffinity="2"'), 'bits': 'contype="2" conaffinity="2"'},
    'bits that differ': {'base': BOX.format('contype="2" conaffinity="2"')},
    'a pair': {'base': BOX.format(''), 'contact': '<contact><pair geom1="knob" geom2="lid"/></contact>'},
    'no filter': {'base': BOX.format(''), 'contact': '<option><flag filterparent="disable"/></option>'},
}
FALLS_THROUGH = {'an exclude of both', 'bits that differ'}
CLOSED = -0.02 / 0.4  # [rad], where the lid lies on the base, at most


def chest(world: str = '', base: str = '', bits: str = '', contact: str = '') -> str:
    return CHEST.format(world=world, base=base, bits=bits, contact=contact)


def fall(model: mujoco.MjModel, seconds: float = 1.0) -> Any:
    """Joint positions [rad] on the way of a lid that was half open."""
    data = mujoco.MjData(model)
    data.qpos[0] = 0.5
    way = []
    for _ in range(round(seconds / DT)):
        mujoco.mj_step(model, data)
        way.append(data.qpos.copy())
    return np.array(way)


def bare(path: str) -> mujoco.MjModel:
    model = mujoco.MjModel.from_xml_path(path)
    model.opt.timestep = DT
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST  # as robots with drives have it
    return model


def compiled(**parts: Any) -> CompiledScene:
    return SceneCache().get(SceneSpec(**parts), DT)


@pytest.mark.parametrize('kind', CHESTS)
def test_a_fixed_robot_touches_its_base_as_in_bare_mujoco(write_model, kind):
    path = write_model('chest', chest(**CHESTS[kind]))
    ours, theirs = fall(compiled(robots=(RobotSpec('r', path, fixed_base=True),)).model), fall(bare(path))
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert (theirs[:, 0].min() < 2 * CLOSED) == (kind in FALLS_THROUGH)


def test_an_object_that_does_not_move_touches_what_hangs_on_it(write_model):
    path = write_model('chest', chest(base=BOX.format('')))
    ours = compiled(objects=(ObjectSpec('chest', path, dynamic=False),)).model
    theirs = bare(path)
    theirs.opt.integrator = ours.opt.integrator
    np.testing.assert_allclose(fall(ours), fall(theirs), atol=1e-6)
    assert fall(ours)[:, 0].min() > 2 * CLOSED


def test_others_keep_their_filter_beside_a_base_that_is_touched(write_model):
    """Links of other robots, of things that move, and of a robot that only its config fixes."""
    still = write_model('still', chest(base=BOX.format('')))
    moving = write_model('moving', chest(base='<freejoint/>' + BOX.format('')))
    robots = (
        RobotSpec('still', still, fixed_base=True),
        RobotSpec('bolted', moving, fixed_base=True),
        RobotSpec('floating', moving),
    )
    objects = (ObjectSpec('loose', moving),)
    model = compiled(robots=robots, objects=objects).model
    model.opt.gravity[:] = 0
    data = mujoco.MjData(model)
    for name in ('robots/still/', 'robots/bolted/', 'robots/floating/', 'objects/loose/'):
        data.joint(name + 'lid').qpos = -0.2  # inside the base
    mujoco.mj_forward(model, data)
    pairs = {frozenset(model.geom(int(geom)).name for geom in pair) for pair in data.contact.geom}
    names = [name.rpartition('/')[0] for name in (model.geom(i).name for i in range(model.ngeom)) if '/lid' in name]
    closed = {name for name in names if {f'{name}/lid', f'{name}/base'} in pairs}  # they all stand in one place
    assert closed == {'robots/still'}


def test_contacts_follow_a_base_that_is_put_elsewhere(write_model):
    path = write_model('chest', chest(base=BOX.format('')))
    model = compiled(robots=(RobotSpec('r', path, fixed_base=True),)).model
    data = mujoco.MjData(model)
    data.mocap_pos[0] = 3, -2, 1
    data.qpos[0] = 0.5
    mujoco.mj_step(model, data, round(1.0 / DT))
    assert 2 * CLOSED < data.qpos[0] < 0


def test_a_robot_without_contacts_with_its_base_keeps_the_filter(write_model):
    path = write_model('chest', chest())  # its base has no shape
    model = compiled(robots=(RobotSpec('r', path, fixed_base=True),)).model
    assert not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
