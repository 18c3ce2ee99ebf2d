"""Self-collisions of a robot: by default, as its config says, and switched while it runs."""

import logging
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.core.robot.robot import BaseRobot
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.model.compiled import CompiledScene
from internutopia.model.overlaps import LinkOverlaps
from internutopia.model.scene_cache import SceneCache
from internutopia.model.spec import Drives, RobotSpec, SceneSpec

# Two sliders on a rail, cubes of 0.2 m at x = -0.5 and 0.5
RAIL = """
<worldbody>
  <body name="rail">
    <inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
    <body name="left" pos="-0.5 0 0"><joint name="left" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
    <body name="right" pos="0.5 0 0"><joint name="right" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
  </body>
</worldbody>"""
DRIVES = Drives(stiffness=400.0, damping=40.0)
INWARDS = {'left': 0.4, 'right': -0.4}  # the cubes overlap by 0
TOUCHING = 0.2  # [m] between the middles of the cubes
GIVES = 0.02  # [m] that drives of 400 N/m press two soft contacts into each other, at most


@BaseRobot.register('GhostRobot')
class GhostRobot(BaseRobot):
    """Switches its self-collisions off when its env is ready, as robots of version 2 do."""

    drives = DRIVES
    fixed_base = True

    def post_reset(self) -> None:
        super().post_reset()
        self.articulation.set_enabled_self_collisions(False)


def link(name: str, mass: float = 1.0, box: float = 0.1) -> str:
    inertial = f'<inertial><mass value="{mass}"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    shape = f'<collision><geometry><box size="{box} {box} {box}"/></geometry></collision>' if box else ''
    return f'<link name="{name}">{inertial + "</inertial>" if mass else ""}{shape}</link>'


def joint(name: str, parent: str, child: str, xyz: str, kind: str = 'continuous') -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="{xyz}"/>'
        '<axis xyz="0 1 0"/></joint>'
    )


@pytest.fixture
def write_urdf(tmp_path) -> Any:
    def write(*parts: str) -> str:
        path = tmp_path / 'robot.urdf'
        path.write_text(f'<robot name="r">{"".join(parts)}</robot>')
        return str(path)

    return write


def compiled(asset: str, **fields: Any) -> CompiledScene:
    return SceneCache().get(SceneSpec(robots=(RobotSpec('r', asset, **fields),)), 0.01)


def excluded(asset: str, **fields: Any) -> set[str]:
    """Pairs of links that pass through each other by name, as `a b`."""
    model = compiled(asset, **fields).model
    pairs = ((int(signature) >> 16, int(signature) & 0xFFFF) for signature in model.exclude_signature)
    return {' '.join(sorted(model.body(body).name.removeprefix('robots/r/') for body in pair)) for pair in pairs}


@pytest.fixture
def start(write_model) -> Any:
    """Starts envs with a robot on a rail, in the asset of a scene; the sliders are driven towards each other."""

    def start(env_num: int = 1, model: str = '', asset: str | None = None, **fields: Any) -> MujocoWorld:
        robot = RobotSpec('r', model or write_model('rail', RAIL), fixed_base=True, drives=DRIVES, **fields)
        world = MujocoWorld(env_num, np.zeros((env_num, 3)), 0.005)
        scene = SceneSpec(asset, robots=(robot,))
        world.load(dict.fromkeys(range(env_num), (world.prepare(scene), scene)))
        squeeze(world, env_num)
        return world

    return start


def squeeze(world: MujocoWorld, env_num: int) -> None:
    world.articulation('r', 0).set_targets(np.arange(env_num), positions=[0.5, -0.5])


def distance(world: MujocoWorld, steps: int = 400) -> list[float]:
    """Between the middles of the sliders [m], by env, after a while."""
    for _ in range(steps):
        assert not world.step(np.arange(world.env_num))
    joints = [world.articulation('r', env_id).get_joint_positions()[env_id] for env_id in range(world.env_num)]
    return [float(1.0 + right - left) for left, right in joints]


# By default


def test_links_that_overlap_at_the_start_pass_through_each_other(write_urdf, caplog):
    links = link('base') + link('arm') + link('tip') + link('far')
    chain = (
        joint('a', 'base', 'arm', '0 0 0.3'),
        joint('b', 'arm', 'tip', '0 0 -0.25'),
        joint('c', 'tip', 'far', '1 0 0'),
    )
    path = write_urdf(links, *chain)
    with caplog.at_level(logging.WARNING, 'internutopia'):
        assert excluded(path) == {'base tip'}  # 5 cm into each other
        assert excluded(path, fixed_base=True) == {'base tip'}
    said = [record.getMessage() for record in caplog.records if 'pass through' in record.getMessage()]
    assert len(said) == 1 and said[0].endswith('pass through each other: base and tip')
    assert path in said[0]


def test_links_that_overlap_where_the_robot_starts_do_too(write_urdf):
    path = write_urdf(
        *(link(name) for name in ('base', 'arm', 'tip')),
        *(joint('a', 'base', 'arm', '0 0 0.3'), joint('b', 'arm', 'tip', '0 0 0.25')),
    )
    assert excluded(path) == set()
    assert excluded(path, joint_positions={'a': np.pi}) == {'base tip'}
    # poses are state: where nothing overlaps, nothing is compiled anew
    cache = SceneCache()
    robots = [RobotSpec('r', path, joint_positions={'a': angle}) for angle in (0.1, 0.2)]
    one, other = (cache.get(SceneSpec(robots=(robot,)), 0.01) for robot in robots)
    assert one is other


def test_a_robot_at_rest_stays_at_rest(write_urdf):
    path = write_urdf(
        *(link(name) for name in ('base', 'arm', 'tip')),
        *(joint('a', 'base', 'arm', '0 0 0.3'), joint('b', 'arm', 'tip', '0 0 -0.25')),
    )
    model = compiled(path, fixed_base=True).model
    model.opt.gravity[:] = 0
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 100)
    assert np.abs(data.qpos).max() == 0.0


def test_neighbours_across_links_that_weigh_nothing_never_collide(write_urdf):
    # 0.1 mm apart: base and arm do not overlap, but will as soon as they turn
    joints = joint('a', 'base', 'cross', '0 0 0.1001'), joint('b', 'cross', 'arm', '0 0 0')
    assert excluded(write_urdf(link('base'), link('cross', mass=0, box=0), link('arm'), *joints)) == {'arm base'}
    assert excluded(write_urdf(link('base'), link('cross', box=0), link('arm'), *joints)) == set()


def test_an_mjcf_file_that_says_which_links_collide_is_taken_at_its_word(write_model):
    overlapping = RAIL.replace('-0.5 0 0', '0.4 0 0')
    assert excluded(write_model('mute', overlapping)) == {'left right'}
    says = '<contact><exclude body1="rail" body2="left"/></contact>'
    assert excluded(write_model('says', overlapping + says)) == {'left rail'}
    bits = overlapping.replace('<geom ', '<geom contype="2" conaffinity="2" ')
    assert excluded(write_model('bits', bits)) == set()


def test_shapes_that_only_touch_collide(write_model):
    touching = RAIL.replace('-0.5 0 0', '0.3 0 0')
    assert excluded(write_model('touching', touching)) == set()


# As the config says


@pytest.mark.parametrize(('flag', 'apart'), [(None, TOUCHING), (True, TOUCHING), (False, 0.0)])
def test_links_collide_as_the_robot_says(start, flag, apart):
    assert distance(start(self_collisions=flag)) == pytest.approx([apart], abs=GIVES)


def test_pairs_of_the_model_give_way_too(start, write_model):
    named = RAIL.replace('<geom ', '<geom name="GEOM" ').replace('GEOM', 'one', 1).replace('GEOM', 'other', 1)
    model = write_model('pairs', named + '<contact><pair geom1="one" geom2="other"/></contact>')
    assert distance(start(model=model)) == pytest.approx([TOUCHING], abs=GIVES)
    assert distance(start(model=model, self_collisions=False)) == pytest.approx([0.0], abs=GIVES)


def test_what_is_around_a_robot_stays_solid(start, write_model):
    wall = write_model('wall', '<worldbody><geom type="box" size="0.1 1 1"/></worldbody>')
    world = start(asset=wall, self_collisions=False)
    assert distance(world) == pytest.approx([0.4], abs=GIVES)  # the cubes are held off by the wall between them


def test_two_robots_collide_whatever_each_does_with_itself(write_model):
    model = write_model('rail', RAIL)
    robots = tuple(
        RobotSpec(name, model, position=(x, 0, 0), fixed_base=True, drives=DRIVES, self_collisions=False)
        for name, x in (('a', 0.0), ('b', 1.4))
    )
    world, scene = MujocoWorld(1, np.zeros((1, 3)), 0.005), SceneSpec(robots=robots)
    world.load({0: (world.prepare(scene), scene)})
    world.articulation('a', 0).set_targets(np.arange(1), positions=[0.0, 0.2])
    world.articulation('b', 0).set_targets(np.arange(1), positions=[-0.2, 0.0])
    for _ in range(400):
        world.step(np.arange(1))
    right, left = (world.articulation(name, 0).get_joint_positions()[0] for name in 'ab')
    assert 0.4 + left[0] - right[1] == pytest.approx(TOUCHING, abs=GIVES)


def test_what_usd_switches_off_can_be_switched_on(write_usd_rail):
    assert excluded(write_usd_rail(enabled=True)) == {'left rail', 'rail right'}  # jointed
    assert excluded(write_usd_rail(enabled=False)) == {'left rail', 'left right', 'rail right'}
    assert excluded(write_usd_rail(enabled=False), self_collisions=True) == {'left rail', 'rail right'}
    assert excluded(write_usd_rail(enabled=True), self_collisions=False) == {'left rail', 'left right', 'rail right'}


@pytest.fixture
def write_usd_rail(tmp_path) -> Any:
    def body(name: str, x: float) -> str:
        return f"""
        def Cube "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {{
            double size = 0.2
            double3 xformOp:translate = ({x}, 0, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }}"""

    def slide(name: str, x: float) -> str:
        return f"""
        def PhysicsPrismaticJoint "to_{name}" {{
            rel physics:body0 = </r/rail>
            rel physics:body1 = </r/{name}>
            point3f physics:localPos0 = ({x}, 0, 0)
            uniform token physics:axis = "X"
        }}"""

    def write(enabled: bool) -> str:
        path = tmp_path / f'rail_{enabled}.usda'
        parts = body('rail', 0) + body('left', -0.5) + body('right', 0.5) + slide('left', -0.5) + slide('right', 0.5)
        path.write_text(f"""#usda 1.0
(
    defaultPrim = "r"
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "r" (prepend apiSchemas = ["PhysicsArticulationRootAPI", "PhysxArticulationAPI"]) {{
    bool physxArticulation:enabledSelfCollisions = {int(enabled)}
    {parts}
}}
""")
        return str(path)

    return write


# While it runs


def test_switching_off_counts_for_the_env_alone(start):
    world = start(3)
    world.articulation('r', 0).set_self_collisions(np.array([1]), False)
    assert distance(world) == pytest.approx([TOUCHING, 0.0, TOUCHING], abs=GIVES)
    alone = start(1, self_collisions=False)
    distance(alone)
    mine, reference = (w.articulation('r', e).get_joint_positions()[e] for w, e in ((world, 1), (alone, 0)))
    assert mine.tolist() == reference.tolist()  # to the bit


def test_a_switch_leaves_the_state_as_it_is(start):
    world = start(2)
    distance(world, steps=20)
    view = world.articulation('r', 1)
    view.set_gains(np.array([1]), stiffness=[300.0, 300.0])
    before = [array[1].tolist() for array in (view.get_joint_positions(), view.get_joint_velocities(), world.times)]
    (together,) = world.get_states(np.array([0, 1]))
    assert together.models[0].arrays['self collisions'] == together.models[1].arrays['self collisions'] == 0
    view.set_self_collisions(np.array([1]), False)
    apart = {states.env_ids[0]: states.models[0] for states in world.get_states(np.array([0, 1]))}
    assert apart[0] is together.models[0]
    assert apart[1].arrays['self collisions'] == 2
    view = world.articulation('r', 1)
    after = [array[1].tolist() for array in (view.get_joint_positions(), view.get_joint_velocities(), world.times)]
    assert after == before and view.get_gains()[0].tolist() == [[400, 400], [300, 300]]


def test_a_switch_back_on_and_the_next_episode(start):
    world = start(1)
    world.articulation('r', 0).set_self_collisions(np.array([0]), False)
    assert distance(world) == pytest.approx([0.0], abs=GIVES)
    scene = world.scene(0).source_with({'r': None})
    world.load({0: (world.prepare(scene), scene)})
    squeeze(world, 1)
    assert distance(world) == pytest.approx([TOUCHING], abs=GIVES)
    world.articulation('r', 0).set_self_collisions(np.array([0]), False)
    world.articulation('r', 0).set_self_collisions(np.array([0]), True)
    assert distance(world) == pytest.approx([TOUCHING], abs=GIVES)


def test_a_saved_state_says_what_collides(start):
    world, other = start(1), start(1)
    world.articulation('r', 0).set_self_collisions(np.array([0]), False)
    distance(world, steps=40)
    saved = world.get_state(0)
    assert other.check_compatible(0, saved) is None
    other.set_state(0, saved)
    assert distance(other, 100) == distance(world, 100)


def test_a_robot_class_may_switch_them_when_its_env_is_ready(make_env, make_task, make_robot, write_model):
    robot = make_robot(write_model('rail', RAIL), type='GhostRobot', name='r')
    tasks = [make_task(robots=[robot], max_steps=999)] * 4
    env = make_env(tasks=tasks, env_num=2, sim={'physics_dt': 0.005, 'substeps': 400})
    for _ in range(2):
        env.reset()
        obs, *_ = env.step([{'r': {'drive': [0.5, -0.5]}}] * 2)
        for each in obs:
            assert each['r']['joint_positions'] == pytest.approx([0.5, -0.5], abs=GIVES)


def write_arm(folder: Any) -> str:
    """An arm whose base is fixed to the world by its file; it folds back over its base."""
    path = folder / 'arm.xml'
    path.write_text("""<mujoco><worldbody><body name="base"><geom type="box" size="0.1 0.1 0.1" mass="1"/>
      <body name="upper" pos="0.2 0 0"><joint name="elbow" axis="0 0 1"/>
        <geom type="box" size="0.08 0.05 0.05" pos="0.1 0 0" mass="1"/></body></body></worldbody></mujoco>""")
    return str(path)


@pytest.mark.parametrize('excludes', ['', '<contact><exclude body1="left" body2="right"/></contact>'])
def test_depths_of_links_that_overlap_in_motion(tmp_path, excludes) -> None:
    path = tmp_path / 'rail.xml'
    path.write_text(f'<mujoco>{RAIL}{excludes}</mujoco>')
    robot = RobotSpec(name='rail', asset=str(path), drives=DRIVES, fixed_base=True)
    positions = np.array([[0.0, 0.0], [-0.4, 0.38], [-0.45, 0.4], [-0.4, 0.3]])
    depths = LinkOverlaps(robot, ['right', 'left']).depths(positions)
    np.testing.assert_allclose(depths, [0.0, 0.0, 0.05, 0.0], atol=1e-9)
    arm = RobotSpec(name='arm', asset=write_arm(tmp_path), drives=DRIVES, fixed_base=True)
    assert LinkOverlaps(arm, ['elbow']).depths(np.array([[0.0], [2.8]])).tolist() == [0.0, 0.0], 'parent and child'
    with pytest.raises(ValueError, match="robot 'arm' has no joint 'elbo'; did you mean 'elbow'"):
        LinkOverlaps(arm, ['elbo'])
    drawn_so = RobotSpec(name='rail', asset=str(path), drives=DRIVES, fixed_base=True, joint_positions={'left': 0.9})
    np.testing.assert_array_equal(LinkOverlaps(drawn_so, ['right', 'left']).depths(positions), 0.0)
