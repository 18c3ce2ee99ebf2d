"""Worker recording: the part of a recorder in each process of a distributed run.

Each writes the episodes of its envs to the folder of the dataset, so a process that dies costs those under way.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.recording.dataset import Dataset
from internutopia.recording.sources import ListSource
from internutopia.recording.watcher import EpisodeWatcher


@dataclass(frozen=True)
class WorkerRecording:
    """Factory of the recording in a process with its envs; see `Env.watch`."""

    folder: Path
    codec: str

    def __call__(self, runner: SimulatorRunner) -> Callable[[], None]:
        """Start recording; returns a function that ends it. FileNotFoundError if the folder is not here."""
        if not Dataset.exists(self.folder):
            raise FileNotFoundError(
                f'{self.folder} is not on {platform.node()}, where a worker runs: record to a folder that all machines '
                'of the cluster share'
            )
        return EpisodeWatcher(ListSource(runner), Dataset(self.folder), self.codec).stop
