"""First minutes of PhysX on a GPU: whether its tensors are there, and physics is that of the CPU; speeds and starts.

    python benchmarks/gpu_physx.py cuda:0 256 1024 4096

One line for each check; a failure names the call that it came from. H1 stand in each of these numbers of envs (two or
more), the smallest one first. The exit status is the number of failures. On the device `cpu` it tries the same code
without a GPU.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import mujoco
import numpy as np
import torch
from gpu_first import call_of

from internutopia.core.runner.grid import env_origins
from internutopia.engines.physx import runtime
from internutopia.engines.physx.device_stage import DeviceStage, new_instance
from internutopia.engines.physx.device_world import PhysxDeviceWorld
from internutopia.engines.physx.prims import scene_text
from internutopia.engines.physx.stage import write_stage
from internutopia.model.spec import ObjectSpec, SceneSpec
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg
from internutopia_extension.robots.legged import H1Robot

DT, SUBSTEPS = 1 / 240, 4
SPACING = 5.0  # [m]
_STEPS = 20  # that are timed
GRAVITY = 9.81
BOX = (
    '<mujoco><worldbody><geom type="plane" size="0 0 1"/><body name="box" pos="0 0 0.1"><freejoint/>'
    '<geom type="box" size="0.1 0.1 0.1"/></body></worldbody></mujoco>'
)


@contextmanager
def started(device: str, env_num: int, scene: SceneSpec) -> Iterator[Any]:
    """A world whose envs all run a scene."""
    world = PhysxDeviceWorld(env_num, env_origins(env_num, SPACING), DT, SUBSTEPS, 1, device=device)
    handle = world.prepare(scene)
    world.load({env_id: (handle, scene) for env_id in range(env_num)})
    try:
        yield world
    finally:
        world.close()


def fall(device: str, env_num: int) -> str:
    """A stone in each env falls by the formula, wherever the env stands."""
    stone = ObjectSpec('stone', position=(0.0, 0.0, 9.0))
    with started(device, min(env_num, 16), SceneSpec(None, objects=(stone,))) as world:
        mask = torch.ones(world.env_num, dtype=torch.bool, device=device)
        for _ in range(30):
            world.advance(mask)
        heights = world.body('stone', 0).get_poses()[0][:, 2]
    fallen = 9.0 - heights.double().cpu()
    expected = GRAVITY / 2 * (30 * SUBSTEPS * DT) ** 2
    assert float((fallen - expected).abs().max()) < 0.01 * expected, fallen
    return f'{float(fallen[0]):.4f} m, by the formula {expected:.4f} m'


def stand(device: str, env_num: int) -> str:
    """H1 stand on their drives in all envs, and one that is pushed moves no other: speed, PhysX's share, start."""
    robot = H1Robot.model(H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[]))
    begin = time.perf_counter()
    with started(device, env_num, SceneSpec('scenes/empty.xml', robots=(robot,))) as world:
        view, mask = world.articulation(robot.name, 0), torch.ones(env_num, dtype=torch.bool, device=device)
        view.get_root_poses()[0].cpu()
        start = time.perf_counter() - begin
        for _ in range(5):
            world.advance(mask)
        view.set_root_velocities(np.array([1]), [[3.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]])
        step = timed(view, lambda: world.advance(mask))
        places = view.get_root_poses()[0].cpu()
        with physx_timed(device) as spent:
            whole = timed(view, lambda: world.advance(mask))
        share = sum(spent) / _STEPS / whole
        memory = f', {torch.cuda.mem_get_info(device)[0] / 2**30:.0f} GiB free' if device != 'cpu' else ''
    apart = (places[2:] - places[0]).abs().max() if env_num > 2 else torch.zeros(())
    assert places[0, 2] > 0.7 and places[1, 0] - places[0, 0] > 0.3, places[:2]
    assert float(apart) < 1e-3, f'envs differ by {float(apart)} m'
    return (
        f'{env_num} H1 stand: {SUBSTEPS * env_num / step:,.0f} env time steps per second, {1e3 * step:.1f} ms a step, '
        f'{share:.0%} of it PhysX, start {start:.1f} s{memory}'
    )


def timed(view: Any, step: Callable[[], Any]) -> float:
    """Return the time of a step [s], in the mean of some."""
    view.get_root_poses()[0].cpu()
    begin = time.perf_counter()
    for _ in range(_STEPS):
        step()
    view.get_root_poses()[0].cpu()
    return (time.perf_counter() - begin) / _STEPS


@contextmanager
def physx_timed(device: str) -> Iterator[list[float]]:
    """Times [s] that PhysX takes for its steps, each of them waited for."""
    spent: list[float] = []

    def step(stage: Any, dt: float) -> None:
        synchronize(device)
        begin = time.perf_counter()
        original(stage, dt)
        synchronize(device)
        spent.append(time.perf_counter() - begin)

    original = DeviceStage.step
    with patch.object(DeviceStage, 'step', step):
        yield spent


def synchronize(device: str) -> None:
    """Wait for a GPU."""
    if device != 'cpu':
        torch.cuda.synchronize(device)


def native(device: str, env_num: int) -> str:
    """Tensors of states lie on the device: a copy by the host in each step would be slow."""
    stone = ObjectSpec('stone', position=(0.0, 0.0, 9.0))
    with started(device, 2, SceneSpec(None, objects=(stone,))) as world:
        world.advance(torch.ones(2, dtype=torch.bool, device=device))
        kinds = {int(columns.native_device.device_type.value) for columns in bindings(world)}
    expected = 1 if device == 'cpu' else 2  # kDLCPU, kDLCUDA
    assert kinds == {expected}, f'DLPack device types {kinds}, not {expected}'
    return f'all on DLPack device type {expected}'


def bindings(world: Any) -> Iterator[Any]:
    """Yield the bindings of poses and velocities."""
    for env_batch in world.env_batches:
        standalone = env_batch.batch._instance._standalone
        yield from (standalone._pose._binding, standalone._velocity._binding)


def reset(device: str, env_num: int) -> str:
    """An env starts afresh on the device."""
    stone = ObjectSpec('stone', position=(0.0, 0.0, 9.0))
    with started(device, 3, SceneSpec(None, objects=(stone,))) as world:
        mask = torch.tensor([True, True, True], device=device)
        for _ in range(10):
            world.advance(mask)
        world.reset_to_start(torch.tensor([False, True, False], device=device))
        world.advance(mask)
        heights = world.body('stone', 0).get_poses()[0][:, 2].cpu()
    assert heights[1] > 8.99 > 8.9 > heights[0] == heights[2], heights
    return 'one env alone'


def environment_ids(device: str, env_num: int) -> str:
    """Boxes on their own planes, all in one place, that PhysX clones itself: its environment ids keep them apart.

    The buffers of pairs are those of PhysX's schema, too small for 1,024 envs whose things are all paired.
    """
    import ovstage
    from ovphysx.types import TensorType

    runtime._start(device)
    model = mujoco.MjModel.from_xml_string(BOX)
    scene = scene_text(model, 'scene')
    prims = write_stage(model).text.replace(scene, '').replace('@/scene', '/World/scene').replace('@', '/World/e0')
    shown = (
        f'def Xform "World"\n{{\n{scene_text(model, "scene", gpu=device != "cpu")}def Xform "e0"\n{{\n{prims}}}\n}}\n'
    )
    stage, physx = ovstage.Stage('environment-ids'), new_instance(device)
    domains = ovstage.PopulationDomain.ALL
    ovstage.population.open_usd_from_string(stage, f'{runtime._HEADER}{shown}', ordinal=1, domains=domains)
    stage.advance_write_floor(ordinal=1).wait()
    physx.wait_task(physx.attach_ovstage(stage, read_ordinal=1))
    physx.wait_task(physx.clone('/World/e0', [f'/World/e{k}' for k in range(1, env_num)]))
    physx.warmup()
    paths = [f'/World/e{k}/r1' for k in range(env_num)]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', DeprecationWarning)
        binding = physx.create_tensor_binding(prim_paths=paths, tensor_type=TensorType.RIGID_BODY_POSE)
    poses = torch.zeros(binding.shape, device=device)
    for _ in range(60):
        physx.step_sync(DT)
    binding.read(poses)
    begin = time.perf_counter()
    for _ in range(_STEPS):
        physx.step_sync(DT)
    binding.read(poses)
    poses, step = poses.cpu(), (time.perf_counter() - begin) / _STEPS
    binding.destroy()
    physx.wait_task(physx.detach_ovstage())
    stage.destroy()
    physx.destroy()
    moved = float((poses[:, :3] - torch.tensor([0.0, 0.0, 0.1])).abs().max())
    assert device == 'cpu' or moved < 0.01, f'boxes moved by {moved:.3f} m: clones in one place meet'
    return f'{env_num} boxes in one place moved by {moved:.4f} m, {1e3 * step:.2f} ms a step'


def main(device: str, env_nums: list[int]) -> int:
    """The number of failures."""
    import_extensions()
    single: tuple[Callable[[str, int], str], ...] = (native, fall, reset)
    many: tuple[Callable[[str, int], str], ...] = (environment_ids, stand)
    checks = [(check, env_nums[0]) for check in single]
    checks += [(check, env_num) for env_num in sorted(env_nums) for check in many]
    failures = 0
    for check, env_num in checks:
        start = time.monotonic()
        try:
            outcome = check(device, env_num)
        except Exception as error:  # the others tell more
            failures += 1
            outcome = f'FAILED in {call_of(error)}: {type(error).__name__}: {error}'
        print(f'{check.__name__}: {outcome}, {time.monotonic() - start:.1f} s', flush=True)
    return failures


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], [int(number) for number in sys.argv[2:]]))
