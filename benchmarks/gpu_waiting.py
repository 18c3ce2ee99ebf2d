"""Waits of a step of `rl.VectorEnv` for the GPU: there must be none. `python benchmarks/gpu_waiting.py cuda:0 4096`.

Steps H1 with velocity commands, randomized as in training, under torch's profiler, and counts what CUDA was asked for:
copies to the host and calls that wait. Each of them must be none, and torch itself is told to raise an error where it
would have to wait.
"""

from __future__ import annotations

import sys
import time
from contextlib import closing

import torch
from torch.profiler import ProfilerActivity, profile

import internutopia_extension
from internutopia.rl import VectorEnv
from internutopia_extension.learning_tasks import velocity

STEPS = 20
PAGEABLE = 'Memcpy DtoH (Device -> Pageable)'  # copies to pinned memory do not wait
WAITS = ('cudaStreamSynchronize', 'cudaDeviceSynchronize', 'cudaEventSynchronize', PAGEABLE, 'aten::item')


def main(device: str, env_num: int) -> int:
    """The number of things that waited."""
    internutopia_extension.import_extensions()
    config = velocity.config(env_num, 0)
    config.simulator = config.simulator.model_copy(update={'backend': 'mujoco_warp', 'device': device})
    on_gpu = device != 'cpu'
    with closing(VectorEnv(config, autoreset_mode='SameStep', arrays='torch')) as envs:
        envs.reset(seed=0)
        actions = torch.zeros(envs.action_space.shape, device=envs.device)  # type: ignore[arg-type]
        for _ in range(10):
            envs.step(actions)
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode('error')
        with profile(activities=activities) as profiler:
            start = time.perf_counter()
            for _ in range(STEPS):
                envs.step(actions)
            asked = time.perf_counter() - start
            if on_gpu:
                torch.cuda.set_sync_debug_mode('default')
        if on_gpu:
            torch.cuda.synchronize()
        done = time.perf_counter() - start
    events = {event.key: event.count for event in profiler.key_averages()}
    waits = {name: events[key] for name in WAITS for key in events if key.startswith(name)}
    if on_gpu:  # the end of the profile waits once itself
        waits = {name: count for name, count in waits.items() if count > 2 or 'Memcpy' in name}
    print(f'{env_num} envs, {STEPS} steps: asked for in {1e3 * asked:.1f} ms, done after {1e3 * done:.1f} ms')
    print(profiler.key_averages().table(sort_by='cpu_time_total', row_limit=25))
    print('what waited:', waits or 'nothing')
    return len(waits)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
