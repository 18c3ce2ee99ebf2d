"""First minute on a GPU: whether kernels, memory pools, capture, streams and a step of many envs work.

    python benchmarks/gpu_first.py cuda:0 4096

One line for each; a failure names the call of ours, or of the engine, that it came from. The exit status is the number
of failures.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from typing import Any

import torch
import warp as wp

import internutopia_extension
from internutopia.engines.warp.arrays import find_failed
from internutopia.rl import VectorEnv
from internutopia_extension.learning_tasks import cart_pole

_CALLERS = ('internutopia', 'benchmarks', 'mujoco_warp')  # whose calls tell what failed


def kernels(device: str) -> str:
    """A kernel of ours is compiled, loaded and launched."""
    failed = _failed(device)
    assert failed.numpy().tolist() == [True, False], failed
    return 'launched'


def memory_pools(device: str) -> str:
    """Check that memory pools are enabled; allocations of the engine in a graph come from them."""
    if device == 'cpu':
        return 'none on the CPU'
    assert wp.is_mempool_enabled(device), 'Warp has no memory pool there: nothing can be allocated in a graph'
    return 'enabled'


def capture(device: str) -> str:
    """A launch is captured, and made again as a graph."""
    if device == 'cpu':
        return 'nothing is captured on the CPU'
    selected, report, failed = _arrays(device)
    stream = wp.Stream(device)
    with wp.ScopedDevice(device), wp.ScopedStream(stream), wp.ScopedCapture(stream=stream) as captured:
        wp.launch(find_failed, 2, [selected, report], [failed])
    assert captured.graph is not None
    wp.capture_launch(captured.graph)
    assert failed.numpy().tolist() == [True, False], failed
    assert wp.is_conditional_graph_supported(), 'no conditional graphs: the driver is older than CUDA 12.4'
    return 'works, loops on the device, too'


def streams(device: str) -> str:
    """Warp and torch work in one order on their own streams."""
    if device == 'cpu':
        return 'none on the CPU'
    main, other = wp.get_stream(device), wp.Stream(device)
    values = torch.zeros(1 << 20, device=device)
    wp.synchronize_device(device)
    with wp.ScopedStream(other), torch.cuda.stream(wp.stream_to_torch(other)):
        values += 1.0
    main.wait_stream(other)
    with torch.cuda.stream(wp.stream_to_torch(main)):
        total = float(values.sum())
    assert total == len(values), total
    return 'wait for each other'


def step(device: str, env_num: int) -> str:
    """Envs are reset, stepped as a graph, and start again."""
    internutopia_extension.import_extensions()
    config = cart_pole.config(env_num, 0)
    config.simulator = config.simulator.model_copy(update={'backend': 'mujoco_warp', 'device': device})
    with closing(VectorEnv(config, autoreset_mode='SameStep', arrays='torch')) as envs:
        envs.reset(seed=0)
        actions = torch.ones(envs.action_space.shape, device=envs.device)  # type: ignore[arg-type]
        for _ in range(3):  # loads the kernels, captures them, and launches the graph
            envs.step(actions)
        envs.core.state.steps[1] = 10**6
        obs: Any
        obs, _, _, truncated, _ = envs.step(actions)
        assert bool(truncated[1]) and bool(torch.isfinite(obs).all()) and float(obs[0].abs().max()) > 0.0
    return f'{env_num} envs'


def _arrays(device: str) -> tuple[wp.array, wp.array, wp.array]:
    selected = wp.array([True, True], dtype=bool, device=device)
    report = wp.array([[1, 0, 0], [0, 0, 0]], dtype=int, device=device)
    return selected, report, wp.zeros(2, dtype=bool, device=device)


def _failed(device: str) -> wp.array:
    selected, report, failed = _arrays(device)
    wp.launch(find_failed, 2, [selected, report], [failed], device=device)
    return failed


def call_of(error: BaseException) -> str:
    """The innermost call of ours or of the engine that an error came from."""
    frames = traceback.extract_tb(error.__traceback__)
    known = [frame for frame in frames if any(name in frame.filename for name in _CALLERS)] or list(frames)
    return f'{known[-1].name} ({known[-1].filename}:{known[-1].lineno}: {known[-1].line})'


def main(device: str, env_num: int) -> int:
    """The number of failures."""
    checks: dict[str, Callable[[], str]] = {
        check.__name__: lambda check=check: check(device) for check in (kernels, memory_pools, capture, streams)
    }
    checks['step'] = lambda: step(device, env_num)
    failures = 0
    for name, check in checks.items():
        start = time.monotonic()
        try:
            outcome = check()
        except Exception as error:  # the others tell more
            failures += 1
            outcome = f'FAILED in {call_of(error)}: {type(error).__name__}: {error}'
        print(f'{name}: {outcome}, {time.monotonic() - start:.1f} s', flush=True)
    return failures


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
