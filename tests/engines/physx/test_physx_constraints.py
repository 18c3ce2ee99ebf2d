"""Equality constraints on PhysX: mimic joints, locked joints and loops, against formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest

from internutopia.engines.physx.bodies import Movers
from internutopia.engines.physx.constraints import Constraints, Mimic
from internutopia.model.spec import Drives, RobotSpec, SceneSpec

G = 9.81
FREE = Drives(stiffness=0.0, damping=0.0)
WriteModel = Callable[[str, str], str]

GRIPPER = (
    '<worldbody><body name="palm"><geom size="0.02" mass="1"/>'
    '<body name="left" pos="0 0.2 0"><joint name="left" type="slide" axis="1 0 0"/><geom size="0.05" mass="2"/></body>'
    '<body name="right" pos="0 -0.2 0">'
    '<joint name="right" type="slide" axis="1 0 0" ref="0.1"/><geom size="0.05" mass="2"/></body>'
    '<body name="gear" pos="0.5 0 0"><joint name="gear" axis="1 0 0"/>'
    '<inertial pos="0 0 0" mass="1" diaginertia="0.1 0.1 0.1"/></body>'
    '<body name="held" pos="0 0 0.5"><joint name="held" axis="0 1 0"/><geom pos="0.3 0 0" size="0.05" mass="2"/></body>'
    '</body></worldbody><equality><joint joint1="right" joint2="left" polycoef="0.02 -0.5 0 0 0"/>'
    '<joint joint1="gear" joint2="left" polycoef="0 3 0 0 0"/><joint joint1="held" polycoef="0.4 0 0 0 0"/></equality>'
)


def test_joints_that_follow_another_one(start: Any, run: Any, write_model: WriteModel) -> None:
    """A slide, a hinge and their inertias on the leader; a joint that is held carries its weight."""
    robot = RobotSpec(
        'gripper', write_model('gripper', GRIPPER), fixed_base=True, position=(0.0, 0.0, 1.0), drives=FREE
    )
    world = start(robot, env_num=2)
    view = world.articulation('gripper', 0)
    assert view.dof_names == ('left', 'right', 'gear', 'held')
    ids = np.arange(2)
    view.set_joint_positions(ids, [[0.0, 0.12, 0.0, 0.4]] * 2)
    view.set_targets(ids, efforts=[[3.0, 0.0, 0.0, 0.0], [0.0, -3.0, 0.0, 0.0]])
    run(world, 0.5)
    left, right, gear, held = view.get_joint_positions().T
    inertia = 2 + 0.5**2 * 2 + 3**2 * 0.1
    assert left == pytest.approx(np.array([3.0, 1.5]) / inertia / 2 * 0.25, rel=0.02)
    assert right == pytest.approx(0.1 + 0.02 - 0.5 * left, abs=1e-4)
    assert gear == pytest.approx(3 * left, abs=1e-4)
    assert held == pytest.approx([0.4] * 2, abs=1e-4)


def test_doors_of_a_scene_that_move_together(start: Any, run: Any, write_model: WriteModel) -> None:
    """Bodies on the world are trees of their own, unless a constraint couples them."""
    doors = ''.join(
        f'<body name="{side}" pos="0 {y} 1"><joint name="{side}" axis="0 0 1"/>'
        f'<geom type="box" size="0.02 0.2 0.3" pos="0 {-y / 2} 0" mass="3"/></body>'
        for side, y in (('left', 0.5), ('right', -0.5))
    )
    coupled = '<equality><joint joint1="right" joint2="left" polycoef="0 -1 0 0 0"/></equality>'
    world = start(scene=write_model('cupboard', f'<worldbody>{doors}</worldbody>{coupled}'))
    world.articulation('scene/left', 0).set_joint_velocities(np.array([0]), [[2.0]])
    run(world, 0.5)
    left, right = (
        float(world.articulation(f'scene/{side}', 0).get_joint_positions()[0, 0]) for side in ('left', 'right')
    )
    assert left == pytest.approx(0.5, rel=0.02), 'half of its momentum went to the other door'
    assert right == pytest.approx(-left, abs=1e-4)


def test_a_loop_of_four_bars(start: Any, run: Any, write_model: WriteModel) -> None:
    """A parallelogram that swings as a pendulum of the same moments, its bars closed by a point."""
    bar = '<inertial pos="0 0 -0.5" mass="1" diaginertia="1e-6 1e-6 1e-6"/>'
    linkage = write_model(
        'linkage',
        f'<worldbody><body name="a" pos="0 0 2"><joint name="a" axis="0 1 0"/>{bar}'
        '<body name="b" pos="0 0 -0.5"><joint name="b" axis="0 1 0"/>'
        '<inertial pos="0.3 0 0" mass="2" diaginertia="1e-6 1e-6 1e-6"/></body></body>'
        f'<body name="c" pos="0.6 0 2"><joint name="c" axis="0 1 0"/>{bar}</body></worldbody>'
        '<equality><connect body1="b" body2="c" anchor="0.6 0 0"/></equality>',
    )
    dt = 1 / 480
    world = start(scene=linkage, dt=dt, env_num=2)
    amplitude = 0.2
    for name, angles in (('a', [amplitude, -amplitude]), ('c', [amplitude])):
        world.articulation(f'scene/{name}', 0).set_joint_positions(np.arange(2), [angles] * 2)
    period = 2 * np.pi * np.sqrt(0.5 / G) * (1 + amplitude**2 / 16)
    run(world, round(period / 2 / dt) * dt)
    a, b = world.articulation('scene/a', 0).get_joint_positions()[0]
    c = world.articulation('scene/c', 0).get_joint_positions()[0, 0]
    assert a == pytest.approx(-amplitude, rel=0.01), 'half a period later it is on the other side'
    assert [b, c] == pytest.approx([-a, a], abs=2e-3)


@pytest.mark.parametrize('sites', [False, True])
def test_bodies_that_are_fixed_to_one_another(start: Any, run: Any, write_model: WriteModel, sites: bool) -> None:
    """Two that spin together about their common centre of mass, and one on the wall."""
    site = '<site name="{}" pos="{} 0 0"/>'
    ends = 'site1="s1" site2="s2"' if sites else 'body1="a" body2="b"'
    nail = 'site1="s3" site2="s4"' if sites else 'body1="c" body2="world"'
    scene = write_model(
        'pair',
        f'<worldbody>{site.format("s4", 3)}'
        f'<body name="a"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/>{site.format("s1", 0.2)}</body>'
        f'<body name="b" pos="0.4 0 0"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/>'
        f'{site.format("s2", -0.2)}</body>'
        f'<body name="c" pos="3 0 0"><freejoint/><geom size="0.1" mass="1"/>{site.format("s3", 0)}</body>'
        f'</worldbody><equality><weld {ends}/><weld {nail}/></equality>',
    )
    world = start(scene=scene)
    for name, speed in (('a', -0.4), ('b', 0.4)):
        world.body(name, 0).set_velocities(np.array([0]), linear=[[0, speed, 0]], angular=[[0, 0, 2.0]])
    run(world, 0.5)
    (one, turn), (other, _) = (world.body(name, 0).get_poses() for name in ('a', 'b'))
    apart = other[0] - one[0]
    assert apart == pytest.approx(0.4 * np.array([np.cos(1), np.sin(1), 0]), abs=0.01)
    assert turn[0] == pytest.approx([np.cos(0.5), 0, 0, np.sin(0.5)], abs=0.01)
    assert (one + other)[0, 2] / 2 == pytest.approx(-G / 2 * 0.25, rel=0.01)
    assert world.body('c', 0).get_poses()[0][0] == pytest.approx([3, 0, 0], abs=1e-4)


def test_a_spring_of_a_joint_without_actuators(start: Any, run: Any, write_model: WriteModel) -> None:
    scene = write_model(
        'flap',
        '<worldbody><body name="flap"><joint name="flap" type="slide" axis="1 0 0" stiffness="50" springref="0.3" '
        'damping="100"/><geom size="0.1" mass="1"/></body></worldbody>',
    )
    world = start(scene=scene)
    run(world, 1.0)
    position = float(world.articulation('scene/flap', 0).get_joint_positions()[0, 0])
    assert position == pytest.approx(0.3 * (1 - np.exp(-50 / 100)), rel=0.02)


def test_coupled_joints_of_a_model() -> None:
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco>{GRIPPER}</mujoco>'.replace(
            '</equality>', '<joint joint1="gear" joint2="held" polycoef="1 2 0 0 0" active="false"/></equality>'
        )
    )
    left, right, gear, held = (model.joint(name).id for name in ('left', 'right', 'gear', 'held'))
    constraints = Constraints(model)
    assert constraints.mimics == {right: Mimic(left, 0.02, -0.5), gear: Mimic(left, 0.0, 3.0)}
    assert constraints.locked == {held: 0.4} and not constraints.loops
    assert [sorted(tree.joints) for tree in Movers(model).articulations] == [[left, right, gear], [held]]
    model.eq_obj1id[1], model.eq_obj2id[1] = right, gear  # whose leader is given twice, is turned round
    assert Constraints(model).mimics[gear] == Mimic(right, 0.0, 1 / 3)


@pytest.mark.parametrize(
    ('constraint', 'words'),
    [
        ('<joint name="cam" joint1="left" joint2="right" polycoef="0 1 2 0 0"/>', "'scene/cam', that is not linear"),
        (
            '<joint name="odd" joint1="left" joint2="apart"/>',
            "'.*left' and '.*apart' are coupled and in different trees",
        ),
    ],
)
def test_couplings_that_there_are_not(make_world: Any, write_model: WriteModel, constraint: str, words: str) -> None:
    body = (
        '<body name="base"><freejoint/><geom size="0.1" mass="1"/><body name="l"><joint name="left"/><geom size="0.1"/>'
        '</body><body name="r"><joint name="right"/><geom size="0.1"/></body></body>'
        '<body name="x"><joint name="apart"/><geom size="0.1"/></body>'
    )
    model = write_model('odd', f'<worldbody>{body}</worldbody><equality>{constraint}</equality>')
    with pytest.raises(NotImplementedError, match=words):
        make_world().prepare(SceneSpec(model))
