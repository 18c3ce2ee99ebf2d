"""First minute of PhysX on a GPU: whether its tensors are there, and physics is that of the CPU.

    python benchmarks/gpu_physx.py cuda:0 1024

One line for each check; a failure names the call that it came from. The exit status is the number of failures. On the
device `cpu` it tries the same code without a GPU.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from gpu_first import call_of

from internutopia.engines.physx.device_world import PhysxDeviceWorld
from internutopia.model.spec import ObjectSpec, SceneSpec
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg
from internutopia_extension.robots.h1 import H1Robot

DT, SUBSTEPS = 1 / 240, 4
GRAVITY = 9.81


@contextmanager
def started(device: str, env_num: int, scene: SceneSpec) -> Iterator[Any]:
    """A world whose envs all run a scene."""
    world = PhysxDeviceWorld(env_num, np.zeros((env_num, 3)), DT, SUBSTEPS, 1, device=device)
    handle = world.prepare(scene)
    world.load({env_id: (handle, scene) for env_id in range(env_num)})
    try:
        yield world
    finally:
        world.close()


def fall(device: str, env_num: int) -> str:
    """A stone in each env falls by the formula, in one place with all others."""
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
    """H1 stand on their drives in all envs, and one that is pushed moves no other."""
    robot = H1Robot.model(H1RobotCfg(position=(0.0, 0.0, 1.05), controllers=[]))
    with started(device, env_num, SceneSpec('scenes/empty.xml', robots=(robot,))) as world:
        view, mask = world.articulation(robot.name, 0), torch.ones(env_num, dtype=torch.bool, device=device)
        for _ in range(5):
            world.advance(mask)
        view.set_root_velocities(np.array([1]), [[3.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]])
        begin = time.perf_counter()
        for _ in range(20):
            world.advance(mask)
        places = view.get_root_poses()[0].cpu()
        seconds = time.perf_counter() - begin
    apart = (places[2:] - places[0]).abs().max() if env_num > 2 else torch.zeros(())
    assert places[0, 2] > 0.7 and places[1, 0] - places[0, 0] > 0.3, places[:2]
    assert float(apart) < 1e-3, f'envs differ by {float(apart)} m'
    return f'{env_num} H1 stand: {20 * SUBSTEPS * env_num / seconds:,.0f} env time steps per second'


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


def main(device: str, env_num: int) -> int:
    """The number of failures."""
    import_extensions()
    checks: tuple[Callable[[str, int], str], ...] = (fall, reset, stand)
    failures = 0
    for check in checks:
        start = time.monotonic()
        try:
            outcome = check(device, env_num)
        except Exception as error:  # the others tell more
            failures += 1
            outcome = f'FAILED in {call_of(error)}: {type(error).__name__}: {error}'
        print(f'{check.__name__}: {outcome}, {time.monotonic() - start:.1f} s', flush=True)
    return failures


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
