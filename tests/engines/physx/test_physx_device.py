"""PhysX with tensors: the same as with arrays on the host, without a wait in a step.

On torch's CPU device, or on what `INTERNUTOPIA_TEST_DEVICE` says.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import mujoco
import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from warp_device import DEVICE

from internutopia.config import PhysxCfg
from internutopia.core.runner.grid import env_origins
from internutopia.engines.mujoco.world import MujocoWorld
from internutopia.model.spec import Drives, ObjectSpec, Probe, RobotSpec, SceneSpec
from internutopia.util.arrays import to_host

NEAR, LATER = 5e-3, 0.05  # contacts of all envs are solved in one scene, in another order: a tumble differs in time
# what asks a device for values, so that the host has to wait for them
WAITING = {'aten::item', 'aten::_local_scalar_dense', 'aten::nonzero', 'aten::is_nonzero', 'aten::masked_select'}
WriteModel = Callable[[str, str], str]


@pytest.fixture
def make_device_world() -> Iterator[Callable[..., Any]]:
    """Makes worlds with tensors, closed after the test."""
    from internutopia.engines.physx.device_world import PhysxDeviceWorld

    worlds: list[PhysxDeviceWorld] = []

    def make(env_num: int, substeps: int = 1, spacing: float = 5.0) -> PhysxDeviceWorld:
        origins = env_origins(env_num, spacing)
        worlds.append(PhysxDeviceWorld(env_num, origins, 1 / 240, substeps, 1, device=DEVICE))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


LIMB = (
    '<worldbody><body name="torso"><geom type="box" size="0.1 0.1 0.05" mass="3"/><body name="leg" pos="0.2 0 0">'
    '<joint name="hip" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1"/>'
    '<body name="foot" pos="0.3 0 0"><inertial pos="0 0 0" mass="0.4" diaginertia="0.01 0.01 0.01"/></body>'
    '</body></body></worldbody>'
)
PROBES = (
    *(Probe('contact', 'torso', sensor='belly'), Probe('contact', 'torso', sensor='stone', against='stone')),
    *(Probe('wrench', 'foot', sensor='foot'), Probe('acceleration', 'leg', sensor='imu', position=(0.2, 0.0, 0.0))),
)


@pytest.fixture
def scene(write_model: WriteModel) -> SceneSpec:
    robot = RobotSpec(
        'limb',
        write_model('limb', LIMB),
        fixed_base=False,
        position=(0.0, 0.0, 0.06),
        drives=Drives(stiffness=40.0, damping=2.0),
        contact_links=('torso', 'leg'),
        probes=PROBES,
    )
    stone = ObjectSpec('stone', position=(0.0, 0.0, 0.2), scale=(0.1, 0.1, 0.1), mass=0.5)
    return SceneSpec('scenes/empty.xml', robots=(robot,), objects=(stone,))


def load(world: Any, scene: SceneSpec) -> Any:
    handle = world.prepare(scene)
    world.load({env_id: (handle, scene) for env_id in range(world.env_num)})
    return world.articulation('limb', 0), world.body('stone', 0)


def seen(view: Any, stone: Any) -> list[np.ndarray]:
    poses = *view.get_root_poses(), *view.get_link_poses(view.body_names), stone.get_poses()[0]
    return [to_host(value) for value in (view.get_joint_positions(), *poses)]


def test_the_same_as_on_the_host(make_world: Any, make_device_world: Any, scene: SceneSpec) -> None:
    """Envs that all stand in one place, with targets of their own; resets, steps of some, and what sensors measure."""
    device_world = make_device_world(4, substeps=4)  # loaded first: PhysX that starts on the CPU stays there
    worlds = device_world, make_world(4, substeps=4)
    views, ids = [load(world, scene) for world in worlds], np.arange(4)
    for step in range(45):
        for world, (view, _) in zip(worlds, views, strict=True):
            view.set_targets(ids, positions=0.4 * np.sin(0.3 * step + ids)[:, None])
            if step == 20:
                world.load({2: (world.prepare(scene), scene)})
            assert not world.step(ids if step < 30 or step > 35 else np.array([0, 3]))
        for other, one in zip(*(seen(*view) for view in views), strict=True):
            np.testing.assert_allclose(other, one, atol=NEAR if step < 15 else LATER)
    for world, (view, _) in zip(worlds, views, strict=True):
        view.set_targets(ids, positions=np.zeros((4, 1)))
        for _ in range(90):
            assert not world.step(ids)
    for probe in PROBES:
        other, one = (to_host(view.measure(probe)) for view, _ in views)
        measured = [0, 3] if probe.kind == 'contact' else slice(None)  # what rubs at rest is not determined
        np.testing.assert_allclose(other[:, measured], one[:, measured], atol=0.5)
    for read in ('get_joint_efforts', 'get_joint_velocities', 'get_contact_forces'):
        other, one = (to_host(getattr(view, read)()) for view, _ in views)
        upwards = (..., 2) if one.ndim == 3 else ...
        np.testing.assert_allclose(other[upwards], one[upwards], atol=0.5)
    assert one[:, 0, 2].min() > 20, 'they lie on the ground'


HUNG = (
    '<worldbody><body name="plate" pos="0 0 1"><freejoint/><geom type="box" size="0.3 0.3 0.02" mass="2"/></body>'
    '</worldbody><equality><connect body1="plate" body2="world" anchor="0.3 0 0"/></equality>'
)


def test_envs_stand_on_a_grid_and_on_one_ground(make_device_world: Any, scene: SceneSpec) -> None:
    """States are as where all envs stand in one place, and the first env's are as if it were alone, to the bit."""
    worlds = [make_device_world(*sizes) for sizes in ((6, 4, 5.0), (6, 4, 0.0), (1, 4, 5.0))]
    views = [load(world, scene) for world in worlds]
    for _ in range(45):
        for world in worlds:
            assert not world.step(np.arange(world.env_num))
    apart, together, alone = (seen(*view) for view in views)
    for one, other, single in zip(apart, together, alone, strict=True):
        np.testing.assert_allclose(one, other, atol=NEAR)
        np.testing.assert_array_equal(one[0], single[0])


def test_joints_to_the_world_hold_where_an_env_stands(make_device_world: Any, write_model: WriteModel) -> None:
    world = make_device_world(4)
    hung = SceneSpec(write_model('hung', HUNG))
    handle = world.prepare(hung)
    world.load({env_id: (handle, hung) for env_id in range(4)})
    for _ in range(240):
        assert not world.step(np.arange(4))
    places = to_host(world.body('plate', 0).get_poses()[0])
    np.testing.assert_allclose(np.linalg.norm(places - [0.3, 0.0, 1.0], axis=1), 0.3, atol=1e-3)
    assert places[:, 2].max() < 0.9, 'they swing'
    np.testing.assert_allclose(places, places[:1].repeat(4, axis=0), atol=1e-3)


def test_envs_that_are_not_stepped_stay_to_the_bit(make_device_world: Any, scene: SceneSpec) -> None:
    world = make_device_world(3)
    view, stone = load(world, scene)
    for _ in range(10):
        world.step(np.arange(3))
    before = [values[1].copy() for values in seen(view, stone)]
    for _ in range(5):
        world.step(np.array([0, 2]))
    for kept, values in zip(before, seen(view, stone), strict=True):
        np.testing.assert_array_equal(values[1], kept)
    assert np.ptp(seen(view, stone)[0]) > 0


def test_gains_and_masses_of_one_env(make_device_world: Any, scene: SceneSpec) -> None:
    world = make_device_world(3)
    view, _ = load(world, scene)
    world.step(np.arange(3))
    view.body('torso').set_masses(np.array([1]), [30.0])
    view.set_gains(np.array([2]), stiffness=[[400.0]])
    view.set_targets(np.arange(3), positions=np.full((3, 1), -0.3))
    for _ in range(240):
        world.step(np.arange(3))
    droop = to_host(view.get_joint_positions())[:, 0] + 0.3
    assert droop[2] < droop[0] / 5
    forces = to_host(view.get_contact_forces())[..., 2].sum(axis=1)
    assert forces[1] - forces[0] == pytest.approx(27 * 9.81, rel=0.02)


def test_nothing_in_a_step_waits_for_the_device(make_device_world: Any, scene: SceneSpec) -> None:
    world = make_device_world(3, substeps=2)
    view, _ = load(world, scene)
    mask, targets = torch.tensor([True, False, True], device=DEVICE), torch.zeros((3, 1), device=DEVICE)
    ids = np.arange(3)
    for _ in range(2):  # all that is made once is made now
        view.set_targets(ids, positions=targets)
        world.reset_to_start(mask)
        world.advance(mask)
        view.measure(PROBES[0])
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        view.set_targets(ids, positions=targets)
        world.reset_to_start(mask)
        failed = world.advance(mask)
        view.measure(PROBES[0])
    called = {event.key for event in profiler.key_averages()}
    assert 'aten::where' in called and not called & WAITING
    assert isinstance(failed, torch.Tensor) and not failed.any()


def test_an_env_that_diverges(make_device_world: Any, scene: SceneSpec) -> None:
    world = make_device_world(3)
    view, _ = load(world, scene)
    view.set_root_poses(np.array([1]), [[1e12, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0]])
    assert list(world.step(np.arange(3))) == [1]
    assert not world.step(np.array([0, 2]))


def test_what_a_gpu_does_not_measure(make_device_world: Any, write_model: WriteModel) -> None:
    world = make_device_world(1)
    box = write_model('box', '<worldbody><body name="box"><geom size="0.1" mass="1"/></body></worldbody>')
    points = Probe('contacts', 'box', sensor='c')
    with pytest.raises(NotImplementedError, match='does not measure points of contacts'):
        world.prepare(SceneSpec(None, robots=(RobotSpec('box', box, fixed_base=False, probes=(points,)),)))


def test_beside_worlds_of_other_kinds(make_world: Any, make_device_world: Any, scene: SceneSpec) -> None:
    mujoco = MujocoWorld(1, np.zeros((1, 3)), 1 / 240, 1, 1)
    for world in (make_device_world(2), make_world(2), make_device_world(1), mujoco):
        load(world, scene)
        assert not world.step(np.arange(world.env_num))
    mujoco.close()


SAID = {
    'gpu_found_lost_aggregate_pairs_capacity': 'The application needs to increase '
    'PxGpuDynamicsMemoryConfig::foundLostAggregatePairsCapacity to 5304 , otherwise, the simulation will miss some',
    'gpu_max_rigid_patch_count': 'Patch buffer overflow detected, please increase its size to at least 5304 in the '
    'scene desc!',
    'gpu_max_rigid_contact_count': 'Contact buffer overflow detected, please increase its size to at least 5304 in it',
    'gpu_collision_stack_size': 'PxGpuDynamicsMemoryConfig::collisionStackSize buffer overflow detected, please '
    'increase its size to at least 5304 in the scene desc! Contacts have been dropped.',
}


@pytest.mark.parametrize('logged', [False, True])
@pytest.mark.parametrize('field', SAID)
def test_a_buffer_of_physx_that_is_too_small(field: str, logged: bool) -> None:
    """Whether PhysX fails or only logs it: the error names the field to set, which there is, and the size."""
    from internutopia.engines.physx.capacities import OverflowLog

    assert field in PhysxCfg.model_fields
    overflows, log = OverflowLog(), logging.getLogger('test of PhysX')
    log.addHandler(overflows)
    with pytest.raises(RuntimeError, match=rf'16 envs.*SimConfig\.physx\.{field}, to 5,304'), overflows.raised(16):
        log.error('another one')
        if not logged:
            raise RuntimeError(SAID[field])
        log.error(SAID[field])
    with pytest.raises(RuntimeError, match='^another one$'), overflows.raised(16):
        raise RuntimeError('another one')
    with overflows.raised(16):
        log.error('another one')


def test_buffers_of_physx_follow_from_envs(write_model: WriteModel) -> None:
    """In one place, n limbs are near one another and what is fixed in all envs; on a grid, of those around.

    An H200 asked for n (n - 1) / 2 of robots and n^2 of a robot and a thing that each env has.
    """
    from internutopia.engines.physx.capacities import capacities_of
    from internutopia.engines.physx.stage import write_stage

    floor = '<geom type="plane" size="0 0 1"/>'
    model = mujoco.MjModel.from_xml_path(write_model('floor', LIMB.replace('<worldbody>', f'<worldbody>{floor}', 1)))
    layout = write_stage(model, shared_scene=True)

    def pairs(envs: int, spacing: float, **chosen: Any) -> int:
        return capacities_of([(layout, envs)], spacing, PhysxCfg(**chosen))['gpuFoundLostPairsCapacity']

    for envs in (4096, 16384):
        asked = envs * (envs - 1) // 2 + envs**2 + envs
        assert asked < pairs(envs, 0.0) < 5 * asked
    assert pairs(2**20, 5.0) == pytest.approx(4 * pairs(2**18, 5.0), rel=1e-6)
    assert pairs(4096, 5.0) == 2**21, "Isaac Lab's default is enough"
    assert pairs(4096, 5.0, gpu_found_lost_pairs_capacity=9) == 9


def test_libraries_that_the_system_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    from internutopia.engines.physx import runtime

    monkeypatch.setattr(runtime, '_first', [])
    monkeypatch.setattr(runtime, 'SYSTEM_LIBRARIES', {'libc.so.6': 'libc6', 'libnone.so.1': 'libnone1'})
    monkeypatch.setitem(sys.modules, 'ovphysx', None)  # whose import fails
    with pytest.raises(ImportError, match=r'lacks libnone\.so\.1, which .* apt-get install libnone1$'):
        runtime._start('cpu')
