"""Kernels that a GPU gets, noted and compiled for it on a machine without one.

    python benchmarks/cuda_kernels.py --arch 80 90 100 --tasks InternUtopia/H1-Velocity-v0 InternUtopia/Franka-Lift-v0

Runs learning tasks dry, two envs for some steps with restarts, a lidar on the robot and, where it has cameras, ray
traced pictures: kernels are noted instead of launched, and code that asks Warp where it runs is told that this is a
GPU, so the kernels are those that a GPU gets, some of which the CPU device never sees. Then NVRTC, which comes with
Warp, compiles the modules that they are in. Warp keeps what was compiled in its cache (`WARP_CACHE_PATH`): only the
first time takes long.
The exit status is the number of modules that could not be compiled.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import warp as wp

import internutopia_extension
from internutopia.config import TaskCfg
from internutopia.config.learning import ObservationTermCfg
from internutopia.rl import VectorEnv
from internutopia_extension.configs.sensors import LidarCfg
from internutopia_extension.learning_tasks import TASKS

DEFAULT_BLOCK = 256  # threads of a block, where a launch says nothing about it
FOUR_TASKS = ('CartPole-v0', 'Franka-Lift-v0', 'H1-Velocity-Rough-v0', 'Jetbot-PointNav-v0')
STEPS = 2


class _Gpu:
    """A device that answers as a GPU does; what it does not know it asks Warp's CPU device."""

    is_cuda, is_cpu, sm_count = True, False, 132

    def __init__(self, cpu: Any):
        self._cpu = cpu

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cpu, name)


class DryLaunches:
    """Kernels that were asked for: names, by the module and the block size that they have to be compiled for."""

    def __init__(self) -> None:
        self.kernels: dict[tuple[Any, int], set[str]] = {}

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note kernels instead of launching them."""
        get_device = wp.get_device
        with patch.multiple(
            wp,
            launch=self.launch,
            launch_tiled=self.launch,
            get_suggested_block_size=self._suggest_block_size,
            get_device=lambda name=None: _Gpu(get_device()) if name is None else get_device(name),
            is_conditional_graph_supported=lambda: True,
            capture_while=lambda condition, while_body, stream=None, **arguments: while_body(**arguments),
            capture_if=_both,
        ):
            yield

    def launch(
        self,
        kernel: Any,
        dim: int | Sequence[int],
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        *_: Any,
        block_dim: int | None = None,
        **__: Any,
    ) -> None:
        """Note a kernel, as the overload for these arguments."""
        if not np.prod(dim):
            return
        if kernel.is_generic:
            kernel = kernel.add_overload(kernel.infer_argument_types([*inputs, *outputs]))
        self._note(kernel, block_dim or DEFAULT_BLOCK)

    def _suggest_block_size(self, kernel: Any, device: Any = None) -> tuple[int, int]:
        self._note(kernel, kernel.module.options['block_dim'])  # it is loaded to be asked
        return DEFAULT_BLOCK, 2 * _Gpu.sm_count

    def _note(self, kernel: Any, block_dim: int) -> None:
        self.kernels.setdefault((kernel.module, block_dim), set()).add(kernel.key)


def run_dry(task: str) -> None:
    """Steps of a learning task with restarts and a lidar, to be noted."""
    module, options = TASKS[task]
    config = importlib.import_module(module).config(2, 0, **options)
    engine = {'backend': 'mujoco_warp', 'device': 'cpu', 'renderer': 'raytrace'}
    config.simulator = config.simulator.model_copy(update=engine)
    config.task_configs = [_with_lidar(each) for each in config.task_configs]
    with closing(VectorEnv(config, autoreset_mode='SameStep', arrays='torch')) as envs:
        envs.reset(seed=0)
        actions = torch.as_tensor(np.zeros_like(envs.action_space.sample()))
        for _ in range(STEPS):
            envs.core.state.steps[1] = 10**6
            envs.step(actions)


def _with_lidar(task: TaskCfg) -> TaskCfg:
    """A task whose first robot has a lidar, and observes it."""
    lidar, (robot, *others), learning = LidarCfg(horizontal_rays=8), task.robots, task.learning
    assert learning is not None
    term = ObservationTermCfg(term='sensor', params={'name': lidar.name, 'key': 'ranges'})
    robots = [robot.update(sensors=[*(robot.sensors or []), lidar]), *others]
    return task.update(robots=robots, learning=learning.update(observations=[*learning.observations, term]))


def compile_module(module: Any, block_dim: int, arch: int) -> str | None:
    """Compile a module of kernels for CUDA; what went wrong, if it did."""
    try:  # `wp.compile_aot_module` compiles for one block size, the module's own
        module._compile(None, output_arch=arch, options=module.resolve_options(wp.config, block_dim=block_dim))
    except Exception as error:
        return str(error)
    return None


def main(arguments: Sequence[str] | None = None) -> int:
    """The number of modules that could not be compiled."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--arch', type=int, nargs='+', default=[80, 90, 100], help='compute capabilities, times ten')
    parser.add_argument('--tasks', nargs='+', default=[f'InternUtopia/{name}' for name in FOUR_TASKS])
    options = parser.parse_args(arguments)
    internutopia_extension.import_extensions()
    dry = DryLaunches()
    with dry.noting():
        for task in options.tasks:
            run_dry(task)
    names = sum(len(kernels) for kernels in dry.kernels.values())
    print(f'{names} kernels in {len(dry.kernels)} modules', flush=True)
    failed = 0
    for arch in options.arch:
        start = time.process_time()
        for (module, block_dim), kernels in dry.kernels.items():
            error = compile_module(module, block_dim, arch)
            if error is not None:
                failed += 1
                print(f'sm_{arch}: {module.name}, block size {block_dim}, {sorted(kernels)}:\n{error}', flush=True)
        print(f'sm_{arch}: compiled in {time.process_time() - start:.0f} s of processor time', flush=True)
    return failed


def _both(condition: Any, on_true: Callable[[], None], on_false: Callable[[], None] | None = None, **_: Any) -> None:
    on_true()
    if on_false is not None:
        on_false()


if __name__ == '__main__':
    sys.exit(main())
