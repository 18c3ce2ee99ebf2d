"""World on `mujoco_warp` against the CPU world: one step from the same state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from markers import slow_but
from warp_device import DEVICE

from internutopia.engines.base import World
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.engines.warp.world import WarpWorld
from internutopia.model.spec import Drives, ObjectSpec, Probe, RobotSpec, SceneSpec

DT = 1 / 240
# what 32-bit floats and a solver tolerance of 1e-6 leave of one step, in a state of order 1; a GPU fuses
# multiplications with additions (on an H200 one velocity of a capsule differs by 1.3e-4)
SINGLE = 1e-4 if DEVICE == 'cpu' else 2e-4
CONVEX = 5e-4  # a cylinder lies on a box at points that the engines choose in different ways
ROUNDING = 1e-5  # relative, of sums of 32-bit floats

# every type of joint; the arm's drives have an effort limit on the second joint
ARM = """
<compiler angle="radian"/>
<worldbody><body name="base"><freejoint/><geom type="box" size="0.1 0.1 0.05" mass="2"/>
  <body name="upper" pos="0 0 0.1"><joint name="turn" axis="0 1 0.2" range="-0.3 2" armature="0.01" damping="0.1"/>
    <geom type="capsule" fromto="0 0 0 0 0 0.3" size="0.03" mass="0.5"/>
    <body name="lower" pos="0 0 0.3">
      <joint name="slide" type="slide" axis="0 0 1" range="-0.1 0.1" actuatorfrcrange="-3 3" frictionloss="0.2"/>
      <geom type="capsule" fromto="0 0 0 0 0 0.2" size="0.02" mass="0.4"/>
      <body name="hand" pos="0 0 0.25"><joint name="ball" type="ball" range="0 0.4" stiffness="0.5" damping="0.05"/>
        <geom type="sphere" size="0.04" pos="0.02 0 0.05" mass="0.2"/></body>
    </body>
  </body>
</body></worldbody>
"""
MESH = '<mesh name="wedge" vertex="-.1 -.1 -.1  .1 -.1 -.1  -.1 .1 -.1  .1 .1 -.1  0 -.1 .1  0 .1 .1"/>'
SHAPES = {
    'box': 'type="box" size=".1 .08 .1"',
    'sphere': 'type="sphere" size=".1"',
    'capsule': 'type="capsule" size=".05 .05"',
    'cylinder': 'type="cylinder" size=".07 .1"',
    'ellipsoid': 'type="ellipsoid" size=".08 .06 .1"',
    'mesh': 'type="mesh" mesh="wedge"',
}


@pytest.fixture
def worlds() -> Any:
    """Makes the CPU world and that on Warp, each with one env per scene, started in it."""
    made: list[World] = []

    def make(*scenes: SceneSpec, substeps: int = 1) -> list[Any]:
        offsets = np.zeros((len(scenes), 3))
        pair: list[Any] = [
            MujocoWorld(len(scenes), offsets, DT, substeps, 1),
            WarpWorld(len(scenes), offsets, DT, substeps, 1, device=DEVICE),
        ]
        for world in pair:
            made.append(world)
            world.load({i: (world.prepare(scene), scene) for i, scene in enumerate(scenes)})
        return pair

    yield make
    for world in made:
        world.close()


def step_both(pair: Sequence[Any], steps: int = 1) -> None:
    for world in pair:
        for _ in range(steps):
            assert world.step(np.arange(world.env_num)) == {}


def assert_same_state(pair: Sequence[Any], env_id: int = 0) -> None:
    cpu, warp = (world.data(env_id) for world in pair)
    assert_same([cpu.qpos, cpu.qvel], [warp.qpos, warp.qvel])


def assert_same(cpu: Any, warp: Any, atol: float = SINGLE, rtol: float = SINGLE) -> None:
    for one, other in zip(cpu, warp, strict=True):
        np.testing.assert_allclose(other, one, atol=atol, rtol=rtol)


@pytest.fixture
def arm(write_model: Callable[[str, str], str]) -> Callable[..., RobotSpec]:
    path = write_model('arm', ARM)
    return lambda **fields: RobotSpec(
        'arm', path, position=(0, 0, 1), drives=Drives(stiffness=40.0, damping=2.0), **fields
    )


TARGETS = {
    'none': {},
    'positions': {'positions': [[0.8, 0.05]]},
    'velocities': {'velocities': [[-1.0, 0.4]]},
    'efforts': {'efforts': [[2.0, -1.0]]},
    'all': {'positions': [[0.8, 0.05]], 'velocities': [[-1.0, 0.4]], 'efforts': [[2.0, 1.0]]},
    'beyond the limit': {'efforts': [[1.0, -50.0]]},
}


@pytest.mark.nightly
@pytest.mark.parametrize('fixed_base', [True, False])
@pytest.mark.parametrize('targets', slow_but('positions', of=TARGETS))
def test_joints_and_drives(worlds, arm, targets, fixed_base):
    """A base that floats or is bolted; hinge, slide and ball, in and beyond their ranges; every kind of target."""
    pair = worlds(SceneSpec(robots=(arm(fixed_base=fixed_base),)))
    for world in pair:
        view = world.articulation('arm', 0)
        view.set_joint_positions([0], [[-0.31, 0.02]])
        view.set_joint_velocities([0], [[0.5, -0.3]])
        if not fixed_base:
            view.set_root_velocities([0], [[0.3, 0.2, -0.1]], [[1.0, -0.5, 0.7]])
        view.set_gains([0], stiffness=[[30.0, 200.0]], damping=[[1.0, 8.0]])
        view.set_targets([0], **TARGETS[targets])
    step_both(pair)
    assert_same_state(pair)
    cpu, warp = (world.articulation('arm', 0) for world in pair)
    assert_same([cpu.get_joint_efforts()], [warp.get_joint_efforts()])
    if targets == 'beyond the limit':
        assert warp.get_joint_efforts()[0, 1] == -3.0
    links = ('base', 'lower', 'hand')
    assert_same(cpu.get_link_poses(links), warp.get_link_poses(links))
    assert_same(cpu.get_link_velocities(links), warp.get_link_velocities(links))
    assert_same(cpu.get_root_velocities(), warp.get_root_velocities())
    assert_same(cpu.get_gains(), warp.get_gains())


@pytest.mark.nightly
@pytest.mark.parametrize('ground', slow_but('box', of=['plane', 'box']))
def test_contacts(worlds, write_model, ground):
    """Each shape slides over the ground, a little in it."""
    size = {'plane': '9 9 1', 'box': '9 9 .1" pos="0 0 -.1'}[ground]
    bodies = ''.join(
        f'<body name="{name}" pos="{0.4 * i} 0 0.099"><freejoint/><geom {shape} mass="1"/></body>'
        for i, (name, shape) in enumerate(SHAPES.items())
    )
    scene = write_model(
        'shapes', f'<asset>{MESH}</asset><worldbody><geom type="{ground}" size="{size}"/>{bodies}</worldbody>'
    )
    pair = worlds(SceneSpec(scene))
    for world in pair:
        for name in SHAPES:
            world.body(name, 0).set_velocities([0], [[0.3, 0.1, -0.05]], [[0.1, 0.2, 0.3]])
    step_both(pair)
    assert pair[0].data(0).ncon >= len(SHAPES)
    for name in SHAPES:
        cpu, warp = (world.body(name, 0) for world in pair)
        if (ground, name) == ('box', 'cylinder'):
            assert_same(cpu.get_poses(), warp.get_poses(), CONVEX)
        else:
            assert_same(cpu.get_poses(), warp.get_poses())
            assert_same(cpu.get_velocities(), warp.get_velocities())


@pytest.mark.nightly
def test_what_is_measured(worlds, arm, models, write_model):
    """Contact forces and probes, in the first instant and after a step; masses and frictions of each env's own."""
    probes = (
        Probe('acceleration', 'hand'),
        Probe('wrench', 'upper'),
        Probe('contact', 'base'),
        Probe('effort', 'turn'),
    )
    robot = arm(contact_links=('base', 'hand'), probes=probes)
    block = ObjectSpec('block', scale=(0.2, 0.2, 0.2), position=(1, 0, 0.0995), mass=2.0)
    scene = SceneSpec(models['floor'], robots=(robot,), objects=(block,))
    pair = worlds(scene, scene)
    for world in pair:
        view = world.articulation('arm', 0)
        view.set_root_poses([0, 1], [[0, 0, 0.0495]] * 2)
        view.set_root_velocities([0, 1], [[0.4, 0.0, 0.0]] * 2)
        view.body('hand').set_masses([1], [0.9])
        view.set_frictions([1], [0.2])
        view.set_footprints([1], ['base'], [0.8, 0.6])
        view.set_joint_dynamics([1], armature=0.05, damping=[0.2, 0.1])
        world.body('block', 0).set_velocities([0, 1], [[0.5, 0, 0]] * 2)
    views = [world.articulation('arm', 0) for world in pair]
    for steps in (0, 1, 1):
        step_both(pair, steps)
        cpu, warp = views
        for probe in probes:
            assert_same([cpu.measure(probe)], [warp.measure(probe)], atol=1e-2, rtol=1e-3)  # forces of order 100
    assert cpu.measure(probes[2]).any() and not np.allclose(*cpu.measure(probes[1]))
    assert_same([cpu.get_contact_forces()], [warp.get_contact_forces()], atol=1e-2, rtol=1e-3)
    for env_id in (0, 1):
        assert_same_state(pair, env_id)
    assert_same([cpu.body('hand').get_masses()], [warp.body('hand').get_masses()])
    assert_same([pair[0].model(1).body_subtreemass], [pair[1].model(1).body_subtreemass])


def test_rays(worlds, arm, models):
    """Distances to the floor and to a box, past the robot's own link and through the whole robot."""
    box = ObjectSpec('box', scale=(0.4, 0.4, 0.4), position=(1.0, 0.0, 1.0))
    scene = SceneSpec(models['floor'], robots=(arm(),), objects=(box,))
    pair = worlds(scene, scene)
    directions = np.array([[[1, 0, 0], [0, 0, -1], [0, 0, 1], [0.6, 0, -0.8]]] * 2, float)
    origins = np.array([[[0, 0, 1.0]], [[0.3, 0.1, 1.1]]])
    for through in (True, False):
        distances = [
            world.articulation('arm', 0).cast_rays(
                np.array([0, 1]), origins, directions, groups=[0], link='base', through_robot=through
            )
            for world in pair
        ]
        np.testing.assert_allclose(distances[1], distances[0], rtol=ROUNDING)
    assert distances[0][0, 0] == pytest.approx(0.8) and np.isinf(distances[0][1, 2])


@pytest.mark.slow
def test_scenes_that_differ_in_numbers(worlds, write_model):
    """Envs of one batch, in scenes whose walls stand elsewhere."""
    scenes = []
    for i, wall in enumerate((0.5, 0.32)):
        asset = write_model(
            f'walls{i}',
            '<worldbody><geom type="plane" size="9 9 1"/>'
            f'<geom type="box" size=".1 1 1" pos="{wall} 0 1"/>'
            '<body name="block" pos="0.125 0 0.0995"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
            '</worldbody>',
        )
        scenes.append(SceneSpec(asset))
    pair = worlds(*scenes)
    assert len(pair[1].env_batches) == 1
    for world in pair:
        world.body('block', 0).set_velocities([0, 1], [[1.0, 0, 0]] * 2)
    step_both(pair)
    for env_id in (0, 1):
        assert_same_state(pair, env_id)
    free, stopped = (pair[1].data(env_id).qvel[0] for env_id in (0, 1))
    assert free > 0.7 and stopped < 0.6  # has hit its wall
