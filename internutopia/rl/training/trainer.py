"""One training run in a folder: checkpoints, a log that survives a kill, and going on where it stopped.

A run's folder holds `run.json` (what is trained, how), `progress.csv` (a line per update), `model_<update>.pt`
(checkpoints of rsl_rl, written whole or not at all), TensorBoard's event files and, when done, `policy.onnx`.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rsl_rl.runners import OnPolicyRunner

from internutopia.rl.rsl_rl import RslRlVecEnv
from internutopia.rl.training.settings import TrainingCfg


@dataclass(frozen=True)
class Progress:
    """One update: its number, env steps so far, wall time so far [s], and means over recently ended episodes."""

    iteration: int
    steps: int
    seconds: float
    mean_return: float
    mean_length: float
    steps_per_second: float
    learning_rate: float
    action_std: float


COLUMNS = tuple(Progress.__dataclass_fields__)


class Runner(OnPolicyRunner):
    """The runner of rsl_rl, with checkpoints that are written whole, a CSV log and a callback after each update."""

    def __init__(self, envs: RslRlVecEnv, settings: TrainingCfg, folder: Path, report: Callable[[Progress], None]):
        with contextlib.redirect_stdout(io.StringIO()):  # it prints its networks
            super().__init__(envs, settings.rsl_rl(), str(folder))
        self._folder, self._report = folder, report
        self._write_log = self.logger.log
        self.logger.log = self._log
        before = read_progress(folder)
        self._steps, self._seconds = (before[-1].steps, before[-1].seconds) if before else (0, 0.0)

    def save(self, path: str, infos: dict[str, Any] | None = None) -> None:
        """Write a checkpoint; whoever is killed meanwhile leaves the older ones as they are."""
        draft = f'{path}.part'
        super().save(draft, infos)
        os.replace(draft, path)

    def learn_until(self, iterations: int) -> None:
        """Go on until this number of updates is done."""
        done = self.current_learning_iteration
        with contextlib.redirect_stdout(io.StringIO()):  # its tables; progress goes through `report`
            self.learn(iterations - done, init_at_random_ep_len=done == 0)

    def _log(self, **values: Any) -> None:
        self._write_log(**values)
        self._steps += self.cfg['num_steps_per_env'] * self.env.num_envs
        taken = values['collect_time'] + values['learn_time']
        self._seconds += taken
        returns, lengths = self.logger.rewbuffer, self.logger.lenbuffer
        progress = Progress(
            iteration=values['it'] + 1,
            steps=self._steps,
            seconds=round(self._seconds, 2),
            mean_return=statistics.fmean(returns) if returns else 0.0,
            mean_length=statistics.fmean(lengths) if lengths else 0.0,
            steps_per_second=self.cfg['num_steps_per_env'] * self.env.num_envs / taken,
            learning_rate=values['learning_rate'],
            action_std=values['action_std'].mean().item(),
        )
        path = self._folder / 'progress.csv'
        is_new = not path.exists()
        with path.open('a', newline='') as file:
            writer = csv.DictWriter(file, COLUMNS)
            if is_new:
                writer.writeheader()
            writer.writerow(asdict(progress))
        self._report(progress)


def read_progress(folder: Path) -> list[Progress]:
    """The lines of a run's log; a half-written last line is left out."""
    path = folder / 'progress.csv'
    if not path.exists():
        return []
    lines = []
    with path.open(newline='') as file:
        for row in csv.DictReader(file):
            with contextlib.suppress(TypeError, ValueError):
                numbers = {name: float(row[name]) for name in COLUMNS}
                lines.append(Progress(**{**numbers, 'iteration': int(row['iteration']), 'steps': int(row['steps'])}))
    return lines


def newest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint with the most updates, None if there is none."""
    checkpoints = sorted(folder.glob('model_*.pt'), key=lambda path: int(path.stem.split('_')[1]))
    return checkpoints[-1] if checkpoints else None
