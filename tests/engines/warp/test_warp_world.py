"""World on `mujoco_warp`: what envs do not share, what goes wrong, and what it cannot run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from markers import slow_but
from warp_device import DEVICE

from internutopia.config import SimConfig
from internutopia.engines.factory import create_world
from internutopia.engines.warp import arrays
from internutopia.engines.warp.world import WarpWorld
from internutopia.model.spec import Drives, ObjectSpec, RobotSpec, SceneSpec

DT = 1 / 240


@pytest.fixture(params=slow_but('shared', of=['shared', 'apart']))
def make_world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a world on the CPU device whose envs are started in scenes, one for each.

    The memory of the host and of the device are the same, or apart as with a GPU.
    """
    if DEVICE == 'cpu':
        monkeypatch.setattr(arrays, 'shares_memory', lambda device: request.param == 'shared')
    worlds: list[WarpWorld] = []

    def make(*scenes: SceneSpec, env_num: int = 0) -> WarpWorld:
        world = WarpWorld(env_num or len(scenes), np.zeros((env_num or len(scenes), 3)), DT, 2, 1, device=DEVICE)
        worlds.append(world)
        start(world, dict(enumerate(scenes)))
        return world

    yield make
    for world in worlds:
        world.close()


@pytest.fixture
def hopper(models: dict[str, str]) -> SceneSpec:
    """A hopper just above the floor."""
    return SceneSpec(models['floor'], robots=(RobotSpec('hopper', models['hopper'], position=(0, 0, 0.27)),))


def start(world: WarpWorld, scenes: dict[int, SceneSpec]) -> None:
    world.load({env_id: (world.prepare(scene), scene) for env_id, scene in scenes.items()})


def run(world: WarpWorld, *env_ids: int, steps: int = 5) -> None:
    for _ in range(steps):
        assert world.step(np.array(env_ids)) == {}


def bits(world: WarpWorld, *env_ids: int) -> list[bytes]:
    """The whole state of envs."""
    return [
        b''.join(value.tobytes() for _, value in sorted(world.get_state(env_id).arrays.items())) for env_id in env_ids
    ]


@pytest.mark.slow
def test_an_env_runs_as_it_does_alone(make_world, hopper):
    """Whatever its neighbours do: reset, end, be joined by others."""
    alone = make_world(hopper)
    run(alone, 0, steps=16)
    world = make_world(hopper, hopper, env_num=5)
    run(world, 0, 1, steps=4)
    start(world, {1: hopper})
    run(world, 0, steps=4)
    start(world, {2: hopper, 3: hopper, 4: hopper})  # the batch grows
    run(world, 0, 3, steps=4)
    world.unload(np.array([1]))
    run(world, 0, 2, 4, steps=4)
    assert bits(world, 0) == bits(alone, 0)
    assert world.times.tolist() == pytest.approx([32 * DT, 0, 8 * DT, 8 * DT, 8 * DT])


def test_envs_that_are_not_stepped_or_reset_do_not_change(make_world, hopper):
    world = make_world(hopper, hopper, hopper)
    run(world, 0, 1, 2)
    before = bits(world, 0, 1, 2)
    run(world, 1)
    assert bits(world, 0, 2) == [before[0], before[2]] and bits(world, 1) != [before[1]]
    start(world, {1: hopper})
    assert bits(world, 0, 2) == [before[0], before[2]]
    view = world.articulation('hopper', 0)
    efforts, poses = view.get_joint_efforts().copy(), view.get_link_poses(['leg'])[0].copy()
    view.set_gains(np.array([1]), stiffness=[[5.0, 5.0]])
    run(world, 1)
    assert bits(world, 0, 2) == [before[0], before[2]]
    np.testing.assert_array_equal(view.get_joint_efforts()[[0, 2]], efforts[[0, 2]])
    np.testing.assert_array_equal(view.get_link_poses(['leg'])[0][[0, 2]], poses[[0, 2]])


def test_links_are_current_after_every_write(make_world, hopper):
    world = make_world(hopper, hopper)
    view = world.articulation('hopper', 0)
    assert view.get_link_poses(['torso'])[0][:, 0, 2] == pytest.approx([0.27, 0.27])
    view.set_root_poses(np.array([1]), [[0, 0, 2.0]])
    assert view.get_link_poses(['torso'])[0][:, 0, 2] == pytest.approx([0.27, 2.0])
    run(world, 0, 1, steps=1)
    assert view.get_link_poses(['torso'])[0][:, 0] == pytest.approx(view.get_root_poses()[0])
    start(world, {1: hopper})
    assert view.get_link_poses(['torso'])[0][1, 0, 2] == pytest.approx(0.27)


@pytest.mark.parametrize('make_world', ['apart'], indirect=True)
def test_the_host_waits_once_per_step(make_world, hopper, monkeypatch):
    world = make_world(hopper, hopper)
    view = world.articulation('hopper', 0)

    def step() -> None:
        run(world, 0, 1, steps=1)
        for get in (view.get_joint_positions, view.get_joint_efforts, view.get_root_poses, view.get_contact_forces):
            get()
        view.get_link_poses(['leg'])
        view.set_targets(np.arange(2), positions=np.zeros((2, 2)))

    step()
    step()
    waits: list[Any] = []
    monkeypatch.setattr(arrays.wp, 'synchronize_device', waits.append)
    step()
    assert len(waits) == 1


@pytest.mark.slow
def test_scenes_of_different_structure(make_world, hopper, models):
    """Each forms a batch; an env that changes scenes moves from one to the other."""
    crates = SceneSpec(models['crates'], robots=hopper.robots)
    world = make_world(hopper, crates, hopper, crates)
    assert len(world.env_batches) == 2
    run(world, 0, 1, 2, 3)
    assert bits(world, 0) == bits(world, 2) and bits(world, 1) == bits(world, 3) and bits(world, 0) != bits(world, 1)
    before = bits(world, 1, 2, 3)
    start(world, {0: crates})
    assert bits(world, 1, 2, 3) == before
    run(world, 0)
    if DEVICE == 'cpu':
        assert bits(world, 0) == [before[0]]
    else:  # contacts of a GPU are in any order
        np.testing.assert_allclose(world.data(0).qpos, world.data(1).qpos, atol=1e-5)


def test_a_saved_state_goes_on_to_the_bit(make_world, hopper):
    world = make_world(hopper, hopper)
    world.articulation('hopper', 0).body('leg').set_masses(np.array([0]), [0.8])
    run(world, 0, 1)
    saved = world.get_state(0)
    run(world, 0, 1)
    after = bits(world, 0)
    assert world.check_compatible(1, saved) is None
    world.set_state(1, saved)
    run(world, 1)
    assert bits(world, 1) == after


@pytest.mark.parametrize('bad', [1e30, 1e11])
def test_an_env_that_diverges_is_alone(make_world, hopper, bad):
    world, other = make_world(hopper, hopper), make_world(hopper, hopper)
    world.articulation('hopper', 0).set_root_velocities(np.array([1]), linear=[[0, 0, bad]])
    failed = world.step(np.array([0, 1]))
    assert list(failed) == [1] and re.match('the simulation diverged: bad (position|velocity) at dof ', failed[1])
    assert np.isfinite(world.data(1).qpos).all()
    run(other, 0, 1, steps=1)
    assert bits(world, 0) == bits(other, 0)
    start(world, {1: hopper})
    run(world, 0, 1)
    run(other, 0)
    start(other, {1: hopper})
    run(other, 1)
    assert bits(world, 0, 1) == bits(other, 0, 1)


@pytest.mark.nightly
def test_buffers_grow_when_contacts_overflow(make_world, write_model, caplog):
    """A table on 30 feet has 120 contacts; none is left out, and nothing else changes."""
    feet = ''.join(f'<geom type="box" size=".04 .04 .1" pos="{0.1 * (i % 6)} {0.1 * (i // 6)} 0"/>' for i in range(30))
    table = write_model(
        'table',
        f'<worldbody><geom type="plane" size="9 9 1"/><body name="table" pos="0 0 .0999"><freejoint/>{feet}</body>'
        '</worldbody>',
    )
    world = make_world(SceneSpec(table), SceneSpec(table))
    with caplog.at_level('WARNING'):
        run(world, 0, 1, steps=60)
    assert sum('they grow from' in record.getMessage() for record in caplog.records) >= 1
    positions, orientations = world.body('table', 0).get_poses()
    assert positions[:, 2] == pytest.approx([0.1, 0.1], abs=1e-3)
    assert orientations == pytest.approx(np.array([[1, 0, 0, 0]] * 2), abs=1e-3)


@pytest.mark.parametrize(
    ('feature', 'named'),
    [
        ('<option><flag sleep="enable"/></option>', 'sleep=enable'),
        ('<option solver="PGS"/>', 'mjSOL_PGS'),
        ('<actuator><pid joint="hinge" kp="10"/></actuator>', 'mjGAIN_PID'),
    ],
)
def test_scenes_that_the_engine_cannot_run_are_refused(make_world, hopper, write_model, feature, named):
    body = '<worldbody><body><joint name="hinge"/><geom size=".1"/></body></worldbody>'
    scene = SceneSpec(write_model('refused', body + feature))
    world = make_world(hopper)
    before = bits(world, 0)
    with pytest.raises(ValueError, match=f"mujoco_warp cannot run this scene: .*{named}.*; backend='mujoco' can"):
        world.prepare(scene)
    assert bits(world, 0) == before


@pytest.mark.parametrize(
    ('contact', 'named'),
    [({'solver': 'PGS'}, 'mjSOL_PGS'), ({'integrator': 'discrete', 'noslip_iterations': 3}, 'noslip')],
)
def test_contact_options_that_the_engine_does_not_have_are_refused(models, contact, named):
    world = create_world(SimConfig(backend='mujoco_warp', device=DEVICE, contact=contact), 1, np.zeros((1, 3)))
    with pytest.raises(ValueError, match=f"mujoco_warp cannot run this scene: .*{named}.*; backend='mujoco' can"):
        world.prepare(SceneSpec(models['floor'], robots=(RobotSpec('arm', models['arm']),)))
    world.close()


@pytest.mark.nightly
def test_fingers_hold_a_cube(make_world, write_model):
    pinch = write_model(
        'pinch',
        """
        <worldbody>
          <geom type="plane" size="9 9 1"/>
          <body name="left" pos="-0.03 0 0.2"><joint name="left_finger" type="slide" axis="1 0 0" damping="40"/>
            <geom type="box" size="0.01 0.02 0.02" mass="0.1" friction="2"/></body>
          <body name="right" pos="0.03 0 0.2"><joint name="right_finger" type="slide" axis="-1 0 0" damping="40"/>
            <geom type="box" size="0.01 0.02 0.02" mass="0.1" friction="2"/></body>
        </worldbody>
        <actuator>
          <position joint="left_finger" kp="1000" forcerange="-20 20" kv="40"/>
          <position joint="right_finger" kp="1000" forcerange="-20 20" kv="40"/>
        </actuator>""",
    )
    robot = RobotSpec('pinch', pinch, drives=Drives(only_if_bare=True))
    cube = ObjectSpec('cube', scale=(0.04, 0.04, 0.04), position=(0, 0, 0.2), mass=0.5)
    world = make_world(SceneSpec(robots=(robot,), objects=(cube,)))
    fingers = world.articulation('pinch', 0)
    fingers.set_controls(np.array([0]), [[0.03, 0.03]])
    run(world, 0, steps=20)
    before = world.body('cube', 0).get_poses()[0][0].copy()
    run(world, 0, steps=200)
    assert np.abs(world.body('cube', 0).get_poses()[0][0] - before).max() < 1e-3  # m


@pytest.mark.parametrize(
    ('fields', 'said'),
    [
        ({'device': 'gpu'}, r"device='gpu': expected 'cpu' or a GPU such as 'cuda:0'"),
        ({'device': 'cuda'}, "such as 'cuda:0'"),
        ({'device': 'cuda:99'}, "device='cuda:99': there is no such device; .*CUDA"),
        ({'backend': 'mujoco', 'device': 'cuda:0'}, "backend='mujoco_warp' for a GPU"),
    ],
)
def test_devices_and_backends_that_there_are_not(fields, said):
    with pytest.raises(ValueError, match=said):
        create_world(SimConfig(**{'backend': 'mujoco_warp', **fields}), 1, np.zeros((1, 3)))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, 'internutopia.engines.warp.world')
    monkeypatch.setitem(sys.modules, 'mujoco_warp', None)
    with pytest.raises(ImportError, match=r"mujoco_warp: pip install -e '\.\[gpu\]'"):
        create_world(SimConfig(backend='mujoco_warp'), 1, np.zeros((1, 3)))


@pytest.mark.slow
@pytest.mark.usefixtures('opengl')
def test_pictures_show_the_state(make_env: Callable[..., Any], make_task, make_block):
    """Drawn by the CPU renderer: the same picture as of the CPU world."""
    block = make_block('block', 1.0, position=(0.0, 0.0, 2.0))
    camera = ((1.5, 1.5, 2.5), (0.0, 0.0, 2.0))
    pictures = []
    for backend in ('mujoco', 'mujoco_warp'):
        env = make_env(tasks=[make_task('floor', robots=[], objects=[block])], env_num=1, sim={'backend': backend})
        env.reset()
        for _ in range(3):
            env.step([None])
        pictures.append(env.render(camera, resolution=(40, 30)))
    difference = np.abs(pictures[0].astype(int) - pictures[1])
    assert pictures[0].std() > 1 and np.mean(difference > 8) < 0.01  # pixels at edges


def test_objects_can_be_posed(make_world, models):
    fixed = ObjectSpec('fixed', scale=(0.2, 0.2, 0.2), position=(1, 0, 0.5), dynamic=False)
    world = make_world(SceneSpec(models['floor'], objects=(fixed,)))
    world.body('fixed', 0).set_poses(np.array([0]), [[2, 0, 0.5]], [[0, 0, 0, 2.0]])
    run(world, 0)
    position, orientation = world.body('fixed', 0).get_poses()
    assert position[0].tolist() == [2, 0, 0.5] and orientation[0].tolist() == [0, 0, 0, 1]


RAIL = """
<worldbody><body name="rail"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
  <body name="left" pos="-0.5 0 0"><joint name="left" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
  <body name="right" pos="0.5 0 0"><joint name="right" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
</body></worldbody>"""


@pytest.mark.nightly
def test_self_collisions_are_switched_off_in_one_env(make_world, write_model):
    robot = RobotSpec('r', write_model('rail', RAIL), fixed_base=True, drives=Drives(400.0, 40.0))
    world = make_world(*[SceneSpec(robots=(robot,))] * 2)
    world.articulation('r', 0).set_targets(np.arange(2), positions=[0.5, -0.5])
    run(world, 0, 1, steps=30)
    world.articulation('r', 0).set_self_collisions(np.array([1]), False)
    run(world, 0, 1, steps=120)
    left, right = (np.array([world.articulation('r', i).get_joint_positions()[i, k] for i in (0, 1)]) for k in (0, 1))
    assert 1.0 + right - left == pytest.approx([0.2, 0.0], abs=0.02)


def test_with_arrays_on_a_device_they_cannot_be_switched(write_model):
    from internutopia.engines.warp.device import WarpDeviceWorld

    robot = RobotSpec('r', write_model('rail', RAIL), fixed_base=True, self_collisions=True)
    world = WarpDeviceWorld(1, np.zeros((1, 3)), DT, 1, 1, device=DEVICE)
    start(world, {0: SceneSpec(robots=(robot,))})
    world.articulation('r', 0).set_self_collisions(np.array([0]), True)  # they are what they are
    with pytest.raises(ValueError, match=r"env 0, robot 'r': .*device.*self_collisions=False.*GenericRobotCfg"):
        world.articulation('r', 0).set_self_collisions(np.array([0]), False)
    world.close()
