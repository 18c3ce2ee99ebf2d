"""Cost of the viewer: steps of 64 envs with an H1 each: without a viewer, with one, with pages that read and do not.

The four take turns in one run. CPU time of the thread that steps (which is what a step waits for, on one thread), and
that of the whole process, in which the viewer's own threads work. Without a page, what the viewer does in a step is so
little that it is timed by itself::

    python benchmarks/viewer.py
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from internutopia.config import Config, SimConfig
from internutopia.core.runner.interfaces import StepWatcher
from internutopia.core.vec_env import Env
from internutopia.viewer import attach
from internutopia.viewer.viewer import RATE, Viewer
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.h1 import H1RobotCfg, move_by_speed_cfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

ENVS, STEPS, ROUNDS = 64, 40, 5
_SETTLED = 3.0  # s, after which geometry has been made and sent
_REST = 0.25  # s, after which a frame is due however long the last one took


def watch(url: str, reads: bool) -> None:
    """Be a page that reads whatever comes, or nothing: the body of a process."""
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
        if not reads:
            time.sleep(3600.0)
        for _ in page:
            pass


def measure(step: Callable[[], Any]) -> np.ndarray:
    """CPU time of this thread and of the process, and time, of `STEPS` steps [s], after a pause and a few steps."""

    def clocks() -> np.ndarray:
        return np.array([time.thread_time(), time.process_time(), time.perf_counter()])

    time.sleep(_SETTLED)
    for _ in range(5):
        step()
    before = clocks()
    for _ in range(STEPS):
        step()
    return clocks() - before


def time_hooks(watchers: Sequence[StepWatcher], calls: int = 2000) -> float:
    """CPU time that a viewer without a page takes in a step [s]."""
    before = time.thread_time()
    for _ in range(calls):
        for watcher in watchers:
            watcher.on_step_start()
            watcher.on_commanded()
            watcher.on_change()
    return (time.thread_time() - before) / calls


def time_frames(watchers: list[StepWatcher], viewer: Viewer, step: Callable[[], Any], frames: int = 40) -> np.ndarray:
    """CPU time that a frame for a page takes in the thread that steps, and in all others [s]."""
    watchers.remove(viewer)  # or it would have taken the frame in the step
    taken, others = 0.0, time.process_time() - time.thread_time()
    for _ in range(frames):
        step()
        time.sleep(_REST)
        before = time.thread_time()
        viewer.on_change()
        taken += time.thread_time() - before
    watchers.append(viewer)
    return np.array([taken, time.process_time() - time.thread_time() - others]) / frames


def main() -> None:
    """Measure and print."""
    import_extensions()
    robot = H1RobotCfg(position=(0.0, 0.0, 0.98), controllers=[move_by_speed_cfg])
    task = FiniteStepTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot], max_steps=10**6)
    simulator = SimConfig(physics_dt=1 / 240, substeps=4, threads=1)
    config = Config(simulator=simulator, env_num=ENVS, task_configs=[task], episode_order='cycle')
    actions = [{'h1': {'move_by_speed': [0.5, 0.0, 0.0]}}] * ENVS
    times: dict[str, list[np.ndarray]] = {
        'no viewer': [],
        'no page': [],
        'a page': [],
        'a page that reads nothing': [],
    }
    with closing(Env(config)) as env:
        env.reset()
        hooks: list[float] = []
        frames: dict[str, list[np.ndarray]] = {'one env': [], 'all envs': []}

        def step() -> None:
            env.step(actions)

        measure(step)
        for _ in range(ROUNDS):
            times['no viewer'].append(measure(step))
            with attach(env) as viewer:
                hooks.append(time_hooks(env.runner.watchers))
                times['no page'].append(measure(step))
                for name, reads in (('a page', True), ('a page that reads nothing', False)):
                    process = multiprocessing.get_context('spawn').Process
                    page = process(target=watch, args=(viewer.url, reads), daemon=True)
                    page.start()
                    while not viewer.pages:
                        step()
                    times[name].append(measure(step))
                    for shown, each in frames.items() if reads else ():
                        viewer._controls.all_envs = shown == 'all envs'
                        measure(step)  # until that is on the page
                        each.append(time_frames(env.runner.watchers, viewer, step))
                        viewer._controls.all_envs = False
                    page.terminate()
                    page.join()
                    while viewer.pages:
                        step()
    base = np.median(times['no viewer'], axis=0)
    took = 1e3 * base[0] / STEPS
    print(f'without a page: {1e6 * np.median(hooks):.1f} us of CPU time a step, which takes {took:.1f} ms')
    for shown, each in frames.items():
        own, others = 1e3 * np.median(each, axis=0)
        low, high = 1e3 * np.min(each, axis=0)[0], 1e3 * np.max(each, axis=0)[0]
        share = 0.1 * RATE * own
        print(
            f'a frame of {shown}: {own:.2f} ms ({low:.2f} to {high:.2f}) of the thread that steps, {others:.1f} ms of '
            f'others; 30 a second: {share:.1f} % of the thread that steps'
        )
    for name, each in times.items():
        thread, process, wall = np.median(each, axis=0)
        share = (process - thread) / wall
        print(f'{name:25} CPU time of a step {thread / base[0]:.3f}, other threads {100 * share:.1f} % of a core')


if __name__ == '__main__':
    main()
