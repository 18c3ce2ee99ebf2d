"""Cost of recording: frames per CPU second of envs with a Jetbot each, with and without it.

Without and with take turns in one run, each an episode in every env; medians of their ratios. CPU time of the process
counts, on one thread; that of `close`, which makes the tables, is told by itself. Rows with a camera have few steps,
and what an image costs is rendering above all::

    python benchmarks/recording.py
"""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from internutopia.config import Config, SensorCfg, SimConfig, TaskCfg
from internutopia.config.learning import ActionCfg, LearningCfg, ObservationTermCfg, RewardTermCfg
from internutopia.core.vec_env import Env
from internutopia.recording import Recorder
from internutopia.recording.dataset import FORMATS, Format
from internutopia.rl import VectorEnv
from internutopia_extension import import_extensions
from internutopia_extension.configs.robots.jetbot import JetbotRobotCfg, move_by_speed_cfg
from internutopia_extension.configs.sensors import RepCameraCfg
from internutopia_extension.configs.tasks import FiniteStepTaskCfg

ROUNDS = 5
ACTION = [0.5, 0.2]  # m/s, rad/s
LEARNING = LearningCfg(
    action=ActionCfg(controller='move_by_speed'),
    observations=[
        ObservationTermCfg(term=term) for term in ('base_linear_velocity', 'joint_velocities', 'last_action')
    ],
    rewards=[RewardTermCfg(term='alive', weight=1.0)],
)


class Case(NamedTuple):
    """Measured case: envs of an API (`Env`, `VectorEnv`), steps, scene, and the width and height of a camera."""

    api: type[Any]
    envs: int
    steps: int
    scene: str
    camera: tuple[int, int] | None = None

    def __str__(self) -> str:
        camera = '' if self.camera is None else f', camera {self.camera[0]}x{self.camera[1]}'
        return f'{self.api.__name__}, {self.envs} envs, {self.scene}{camera}'

    def config(self) -> Config:
        """The run."""
        sensors: list[SensorCfg] = []
        if self.camera is not None:
            path = 'chassis/rgb_camera/jetbot_camera'
            sensors = [RepCameraCfg(name='camera', prim_path=path, resolution=self.camera)]
        robot = JetbotRobotCfg(position=(0.0, 0.0, 0.03), controllers=[move_by_speed_cfg], sensors=sensors)
        task = FiniteStepTaskCfg(
            scene_asset_path=f'scenes/{self.scene}.xml',
            robots=[robot],
            max_steps=self.steps,
            max_episode_steps=self.steps,
            learning=LEARNING if self.api is VectorEnv else None,
        )
        simulator = SimConfig(physics_dt=1 / 240, substeps=4, threads=1, rendering_interval=0)
        tasks: list[TaskCfg] = [task] * self.envs
        return Config(simulator=simulator, env_num=self.envs, task_configs=tasks, metrics_save_path=None, seed=0)


CASES = [
    *(Case(api, envs, 200, scene) for api in (Env, VectorEnv) for scene in ('empty', 'rooms') for envs in (16, 64)),
    Case(Env, 16, 8, 'rooms', (64, 48)),
    Case(Env, 4, 8, 'rooms', (320, 240)),
]


def measure(case: Case, config: Config, format: Format | None, folder: Path) -> tuple[float, float]:
    """CPU time of the steps of a run, and of making its tables [s]."""
    with closing(case.api(config)) as env:
        actions = (
            np.array([ACTION] * case.envs, np.float32)
            if case.api is VectorEnv
            else [{'jetbot': {'move_by_speed': [*ACTION]}} for _ in range(case.envs)]
        )
        recorder = None if format is None else Recorder(folder, config, format)
        if recorder is not None:
            recorder.attach(env)
        env.reset()
        start = time.process_time()
        for _ in range(case.steps):
            env.step(actions)
        stepped = time.process_time()
        if recorder is not None:
            recorder.close()
        return stepped - start, time.process_time() - stepped


def main() -> None:
    """Measure and print."""
    import_extensions()
    print('| envs | ms a step | ratio | ms recorded for each env step | tables, of the steps |')
    for case in CASES:
        config = case.config()
        for format in FORMATS if case.camera else ('hdf5',):  # without images, what is recorded is the same
            times: dict[Format | None, list[tuple[float, float]]] = {None: [], format: []}
            for _ in range(ROUNDS):
                for each, measured in times.items():
                    with tempfile.TemporaryDirectory() as folder:
                        measured.append(measure(case, config, each, Path(folder)))
            bare, _ = np.array(times[None]).T
            recorded, tables = np.array(times[format]).T
            steps = case.steps * case.envs
            print(
                f'| {case}, {format} | {1e3 * np.median(bare) / case.steps:.2f} | {np.median(bare / recorded):.2f} '
                f'| {1e3 * np.median(recorded - bare) / steps:.4f} | {np.median(tables / bare):.2f} |',
                flush=True,
            )


if __name__ == '__main__':
    main()
