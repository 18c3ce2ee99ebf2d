"""Cost of recording: frames per second of 16 envs with a Jetbot each, with and without it, with and without a camera.

Without and with take turns in one run, each an episode in every env. CPU time of the process counts, on one thread;
that of `close`, which makes the tables, is told by itself::

    python benchmarks/recording.py
"""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np

from internutopia.core.config import Config, SensorCfg, SimConfig
from internutopia.core.vec_env import Env
from internutopia.recording import Recorder
from internutopia.recording.dataset import FORMATS, Format
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.sensors import RepCameraCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

ENVS, STEPS, ROUNDS = 16, 30, 3
CAMERA = RepCameraCfg(name='camera', prim_path='chassis/rgb_camera/jetbot_camera', resolution=(64, 48))


def measure(config: Config, format: Format | None, folder: Path) -> tuple[float, float]:
    """CPU time of the steps of a run, and of making its tables [s]."""
    with closing(Env(config)) as env:
        recorder = None if format is None else Recorder(folder, config, format)
        if recorder is not None:
            recorder.attach(env)
        env.reset()
        start = time.process_time()
        for _ in range(STEPS):
            env.step([{'jetbot': {'move_by_speed': [0.5, 0.2]}}] * ENVS)
        stepped = time.process_time()
        if recorder is not None:
            recorder.close()
        return stepped - start, time.process_time() - stepped


def main() -> None:
    """Measure and print."""
    import_extensions()
    for sensors in ([], [CAMERA]):
        cameras: list[SensorCfg] = [*sensors]
        robot = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg], sensors=cameras)
        task = FiniteStepTaskCfg(scene_asset_path='scenes/empty.xml', robots=[robot], max_steps=STEPS)
        simulator = SimConfig(physics_dt=1 / 240, substeps=4, threads=1, rendering_interval=0)
        config = Config(simulator=simulator, env_num=ENVS, task_configs=[task] * ENVS, metrics_save_path=None, seed=0)
        times: dict[Format | None, list[tuple[float, float]]] = {None: [], 'lerobot': [], 'hdf5': []}
        for _ in range(ROUNDS):
            for format in (None, *FORMATS):
                with tempfile.TemporaryDirectory() as folder:
                    times[format].append(measure(config, format, Path(folder)))
        bare = np.median(times[None], axis=0)[0]
        print(f'{len(cameras)} cameras: {1e3 * bare / STEPS:.2f} ms of CPU time a step of {ENVS} envs')
        for format in FORMATS:
            stepped, closed = np.median(times[format], axis=0)
            print(
                f'  {format}: frames per second {bare / stepped:.2f} of those without; tables {closed / bare:.2f} of it'
            )


if __name__ == '__main__':
    main()
