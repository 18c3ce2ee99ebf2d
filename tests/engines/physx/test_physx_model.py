"""Scenes as PhysX takes them, without PhysX: masses, drives, filters, joint frames and the stage's text."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from internutopia.engines.physx.bodies import MassSums, Movers
from internutopia.engines.physx.drives import Drives
from internutopia.engines.physx.filters import Filters
from internutopia.engines.physx.force_sensors import contact_sensors
from internutopia.engines.physx.materials import friction_modes
from internutopia.engines.physx.prims import joint_turn
from internutopia.engines.physx.shapes import shape_text
from internutopia.engines.physx.stage import write_stage
from internutopia.engines.physx.tensors import slot_places
from internutopia.model.physx_attributes import MODES
from internutopia.util.log import recorded_warnings
from internutopia.util.rotations import quat_rotate

ROBOT = """
<mujoco><compiler angle="radian"/><worldbody>
  <geom name="ground" type="plane" size="9 9 1"/>
  <body name="torso" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.2 0.3" mass="3"/>
    <body name="head" pos="0 0 0.4" euler="0.3 0.2 0.1"><geom size="0.1" mass="1" pos="0.02 0 0"/>
      <body name="hat" pos="0 0.1 0.1" euler="0 0.4 0"><geom type="box" size="0.1 0.05 0.02" mass="0.5"/></body>
    </body>
    <body name="arm" pos="0 0.3 0.2"><joint name="lift" axis="0 1 0"/><joint name="swing" axis="1 0 0"/>
      <geom type="capsule" fromto="0 0 0 0 0.3 0" size="0.03" mass="0.6"/>
      <body name="hand" pos="0 0.3 0">
        <joint name="wrist" axis="0 0 1" range="-1 1"/><geom size="0.04" mass="0.2"/>
      </body>
    </body>
  </body>
  <body name="door" pos="2 0 1"><joint name="hinge" axis="0 0 1"/><geom type="box" size="0.4 0.02 0.9" mass="8"/></body>
  <body name="crate" pos="3 0 1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
  <body name="table" pos="4 0 1" mocap="true"><geom type="box" size="0.1 0.1 0.1"/></body>
</worldbody>
<contact><exclude body1="torso" body2="hand"/></contact>
<sensor><contact name="hand" body1="hand" data="force" reduce="netforce"/></sensor>
</mujoco>"""


@pytest.fixture
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(ROBOT)


def test_movers_and_what_they_form(model: mujoco.MjModel) -> None:
    movers = Movers(model)
    name = [model.body(body).name for body in range(model.nbody)]
    assert [name[mover] for mover in movers.of] == [
        *('world', 'torso', 'torso', 'torso', 'arm', 'hand', 'door', 'crate', 'table')
    ]
    robot, door = movers.articulations
    assert (name[robot.root], robot.fixed, [name[link] for link in robot.links]) == ('torso', False, ['arm', 'hand'])
    assert (door.root, door.fixed, [name[link] for link in door.links]) == (0, True, ['door'])
    assert ([name[b] for b in movers.free], [name[b] for b in movers.kinematic]) == (['crate'], ['table'])


def test_masses_of_what_is_fixed_are_summed(model: mujoco.MjModel) -> None:
    """As MuJoCo's own composite inertia about the centre of mass has it."""
    movers, torso = Movers(model), model.body('torso').id
    fields = [getattr(model, f'body_{name}')[None] for name in ('mass', 'inertia', 'ipos', 'iquat')]
    sums = MassSums(movers, [torso]).columns(*fields)
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    own = [model.body(name).id for name in ('torso', 'head', 'hat')]
    total = model.body_mass[own].sum()
    centre = (model.body_mass[own, None] * data.xipos[own]).sum(axis=0) / total
    tensor = np.zeros((3, 3))
    for body in own:
        axes, arm = data.ximat[body].reshape(3, 3), data.xipos[body] - centre
        tensor += axes @ np.diag(model.body_inertia[body]) @ axes.T
        tensor += model.body_mass[body] * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    assert sums.masses[0, 0] == pytest.approx(total)
    assert sums.frames[0, 0, :3] + data.xpos[torso] == pytest.approx(centre)
    assert sums.moments[0, 0] == pytest.approx(np.linalg.eigvalsh(tensor))
    frame = sums.frames[0, 0, [6, 3, 4, 5]]
    axes = np.stack([quat_rotate(frame, unit) for unit in np.eye(3)], axis=1)
    assert axes @ np.diag(sums.moments[0, 0]) @ axes.T == pytest.approx(tensor, abs=1e-9)


def test_actuators_are_one_drive() -> None:
    """Targets of PhysX stand for the same effort as MuJoCo's actuators and springs, clamped as a whole."""
    model = mujoco.MjModel.from_xml_string("""
    <mujoco><compiler angle="radian"/><worldbody><body><joint name="a" axis="0 1 0" ref="0.2" stiffness="3"
      springref="0.5" actuatorfrcrange="-20 20" actuatorfrclimited="true"/><geom size="0.1"/>
      <body><joint name="b" axis="0 1 0"/><geom size="0.1"/></body></body></worldbody>
    <actuator><position joint="a" kp="40" gear="2"/><velocity joint="a" kv="1.5"/><motor joint="b" gear="3"/></actuator>
    </mujoco>""")
    drives, controls = Drives(model), np.array([[0.3, -0.4, 2.0]])
    fields = lambda name: getattr(model, name)[None]  # noqa: E731
    gains = drives.gains(fields)
    efforts = drives.efforts(gains, controls)
    position, velocity, effort = drives.targets(gains, efforts).values()
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = (0.25, 0.1), (0.7, -0.2), controls[0]
    mujoco.mj_forward(model, data)
    q = data.qpos - model.qpos0
    pulled = (gains.stiffness + gains.spring)[0] * (position[0] - q) + gains.damping[0] * (velocity[0] - data.qvel)
    assert pulled + effort[0] == pytest.approx(data.qfrc_actuator + data.qfrc_spring)
    assert drives.applied(gains, efforts, data.qpos[None], data.qvel[None])[0] == pytest.approx(data.qfrc_actuator)
    assert drives.properties(gains, fields)['MAX_FORCE'].tolist() == [[20.0, 1e30]]


def test_actuators_that_are_no_drives() -> None:
    muscle = (
        '<mujoco><worldbody><body><joint name="a"/><geom size="0.1"/></body></worldbody>'
        '<actuator><muscle name="biceps" joint="a" lengthrange="0 1"/></actuator></mujoco>'
    )
    with pytest.raises(NotImplementedError, match="'biceps' is no motor, position or velocity actuator"):
        Drives(mujoco.MjModel.from_xml_string(muscle))


def test_bodies_that_pass_through_each_other(model: mujoco.MjModel) -> None:
    filters = Filters(Movers(model))
    names = {tuple(model.body(body).name for body in pair) for pair in filters.passing()}
    assert names == {('torso', 'arm'), ('head', 'arm'), ('hat', 'arm'), ('arm', 'hand'), ('torso', 'hand')}
    assert not filters.touches(model.body('torso').id, model.body('hat').id)
    assert filters.touches(model.body('head').id, model.body('hand').id)


def test_text_of_a_stage(model: mujoco.MjModel) -> None:
    layout = write_stage(model)
    torso, hand = model.body('torso').id, model.body('hand').id
    assert layout.roots == (f'a0/b{torso}', 'a1/root')
    assert all(f'def Xform "r{model.body(name).id}"' in layout.text for name in ('crate', 'table'))
    assert f'def Xform "d{model.joint("lift").id}"' in layout.text, 'a link between two joints of a body'
    assert layout.text.count('"PhysicsScene"') == 0 and layout.text.count('def PhysicsScene') == 1
    assert 'lowerLimit = -57.29' in layout.text
    (sensor,) = contact_sensors(model, layout.colliders)
    assert sensor.paths == (f'a0/b{hand}/w{hand}/g{model.body_geomadr[hand]}',) and not sensor.counts


def test_frames_of_joints() -> None:
    axes = '1 0 0', '-1 0 0', '0 1 0', '0.6 0 -0.8'
    joints = ''.join(f'<joint type="hinge" axis="{axis}"/>' for axis in axes[:3])
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><body>{joints}<geom size="0.1"/><body><joint type="slide" axis="{axes[3]}"/>'
        '<geom size="0.1"/><body><joint type="ball"/><geom size="0.1"/></body></body></body></worldbody></mujoco>'
    )
    for joint, axis in enumerate(axes):
        turned = quat_rotate(joint_turn(model, joint), np.array([1.0, 0.0, 0.0]))
        assert turned == pytest.approx(np.array(axis.split(), float))
    assert joint_turn(model, 4) == pytest.approx([1, 0, 0, 0])


def shape_of(size: str) -> tuple[str, str, str]:
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><geom type="ellipsoid" size="{size}"/></worldbody></mujoco>'
    )
    return shape_text(model, 0)


def vertices(text: str) -> np.ndarray:
    points = next(line for line in text.splitlines() if 'points' in line).partition('= ')[2]
    return np.array([[float(x) for x in p.split(',')] for p in points.strip('[]()').split('), (')])


def test_ellipsoids_are_hulls_and_discs_cylinders() -> None:
    kind, schemas, text = shape_of('0.03 0.02 0.04')
    points = vertices(text)
    assert kind == 'Mesh' and 'PhysicsMeshCollisionAPI' in schemas and 200 < len(points) < 256
    assert np.sum((points / [0.03, 0.02, 0.04]) ** 2, axis=1) == pytest.approx(1.0)
    kind, _, text = shape_of('0.03 0.005 0.03')
    assert kind == 'Cylinder' and 'axis = "Y"' in text and 'radius = 0.03' in text and 'height = 0.0025' in text


def test_friction_of_higher_priority() -> None:
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom size="1"/><geom size="1" priority="1" condim="1"/>'
        '<geom size="1" priority="1" friction="2 0 0"/></worldbody></mujoco>'
    )
    assert friction_modes(model) == ['average', 'min', 'max']
    model.geom_condim[:] = 3
    assert friction_modes(model) == ['max'] * 3


@pytest.mark.parametrize(
    ('friction', 'mode', 'warned'), [(0.5, 'average', False), (0.8, 'average', True), (0.5, 'multiply', True)]
)
def test_combine_modes_that_do_not_count_are_warned_of(friction: float, mode: str, warned: bool) -> None:
    """Beside a robot of more friction; materials that combine to the same by any mode are nothing to warn of."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom name="robot" size="1"/><geom name="one" size="1" priority="1" friction="0.5 0 0"/>'
        f'<geom name="other" size="1" priority="1" friction="{friction} 0 0"/></worldbody></mujoco>'
    )
    with recorded_warnings() as warnings:
        modes = friction_modes(model, {name: {MODES[0]: mode} for name in ('one', 'other')})
    assert modes == ['average', 'min', 'min']
    assert ['combine modes of materials do not count' in each.text for each in warnings] == [True] * warned


def test_level_planes_are_common_to_the_envs_of_a_shared_scene() -> None:
    """But for those that tell envs apart, as they are inclined, or that a sensor or a filter is of."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>'
        '<geom name="slope" type="plane" size="1 1 1" euler="0 10 0"/><body name="stage" pos="0 0 1">'
        '<geom name="sensed" type="plane" size="1 1 1"/></body><body name="box" pos="0 0 2"><freejoint/>'
        '<geom name="box" size="0.1" mass="1"/></body></worldbody><sensor><contact body1="stage" data="force" '
        'reduce="netforce"/></sensor></mujoco>'
    )
    alone, shared = write_stage(model), write_stage(model, shared_scene=True)
    geoms = {name: model.geom(name).id for name in ('floor', 'slope', 'sensed', 'box')}
    assert not alone.common and 'Plane' in alone.text
    assert shared.common.count('def Plane') == 1 and shared.text.count('def Plane') == 2
    assert {name for name, geom in geoms.items() if shared.colliders[geom].startswith('$')} == {'floor'}
    assert '<$/c0>' in shared.text, 'colliders of envs touch it'


def test_copies_stand_on_a_grid_that_floats_resolve() -> None:
    near, far = slot_places(9, 10.0), slot_places(1024, 100.0)
    np.testing.assert_array_equal(near[:4, :2], [[0, 0], [0, 10], [0, 20], [10, 0]])
    assert not slot_places(1, 10.0).any() and not slot_places(3, 0.0).any()
    assert np.spacing(np.float32(far.max())) < 4e-5 and np.unique(far, axis=0).shape == far.shape
