"""Cost of the viewer: steps of 64 envs with an H1 each, without a viewer, with one without pages, and with a page.

The three take turns in one run. CPU time of the thread that steps (which is what a step waits for, on one thread), and
that of the whole process, in which the viewer's own threads work::

    python benchmarks/viewer.py
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np

from internutopia.core.config import Config, SimConfig
from internutopia.core.vec_env import Env
from internutopia.viewer import attach
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

ENVS, STEPS, ROUNDS = 64, 60, 5


def watch(url: str) -> None:
    """Be a page that reads whatever comes: the body of a process."""
    import msgspec
    import viser
    from websockets.sync.client import connect

    camera: dict[str, Any] = {
        'wxyz': (1, 0, 0, 0),
        'position': (0, 0, 1),
        'look_at': (0, 0, 0),
        'up_direction': (0, 0, 1),
    }
    size = {'fov': 1.0, 'near': 0.01, 'far': 100.0, 'image_height': 100, 'image_width': 100}
    protocol: Any = f'viser-v{viser.__version__}'
    with connect(url.replace('http', 'ws', 1).rstrip('/'), subprotocols=[protocol], max_size=None) as page:
        page.send(msgspec.msgpack.encode({'type': 'ViewerCameraMessage', **camera, **size}))
        for _ in page:
            pass


def measure(step: Callable[[], Any]) -> np.ndarray:
    """CPU time of this thread and of the process, and time, of `STEPS` steps [s]."""

    def clocks() -> np.ndarray:
        return np.array([time.thread_time(), time.process_time(), time.perf_counter()])

    before = clocks()
    for _ in range(STEPS):
        step()
    return clocks() - before


def main() -> None:
    """Measure and print."""
    import_extensions()
    robot = H1RobotCfg(position=(0.0, 0.0, 0.98), controllers=[move_by_speed_cfg])
    task = FiniteStepTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot], max_steps=10**6)
    simulator = SimConfig(physics_dt=1 / 240, substeps=4, threads=1)
    config = Config(simulator=simulator, env_num=ENVS, task_configs=[task], episode_order='cycle')
    actions = [{'h1': {'move_by_speed': [0.5, 0.0, 0.0]}}] * ENVS
    times: dict[str, list[np.ndarray]] = {'no viewer': [], 'no page': [], 'a page': []}
    with closing(Env(config)) as env:
        env.reset()

        def step() -> None:
            env.step(actions)

        measure(step)
        for _ in range(ROUNDS):
            times['no viewer'].append(measure(step))
            with attach(env) as viewer:
                times['no page'].append(measure(step))
                page = multiprocessing.get_context('spawn').Process(target=watch, args=(viewer.url,), daemon=True)
                page.start()
                while not viewer.pages:
                    step()
                time.sleep(1.0)  # geometry is on its way
                times['a page'].append(measure(step))
                page.terminate()
                page.join()
    base = np.median(times['no viewer'], axis=0)
    print(f'{ENVS} envs, {1e3 * base[2] / STEPS:.1f} ms a step; ratios to no viewer:')
    for name, each in times.items():
        thread, process, wall = np.median(each, axis=0) / base
        print(f'{name:10} thread {thread:.3f}, process {process:.3f}, time {wall:.3f}')


if __name__ == '__main__':
    main()
