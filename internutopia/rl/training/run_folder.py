"""Records of a training run in its folder, next to the checkpoints: its settings and its progress.

`run.json` holds the task and its settings, so that a run continues as it began. `progress.csv` has a line per update.
Both stay readable whenever the run is killed. The learning curve is drawn from the latter.
"""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from pydantic import ValidationError

from internutopia.config.base import BaseCfg, Count, Seed
from internutopia.rl.training.settings import TrainingCfg
from internutopia.util.cache_folder import PATIENCE, lock_file, unlock_file
from internutopia.util.imports import install_hint
from internutopia.util.replacing import replacing

RUN, PROGRESS, LOCK = 'run.json', 'progress.csv', '.lock'
_LONGEST_LINE = 1000  # characters, of the log; longer is what a crash of the machine may leave


class RunRecord(BaseCfg):
    """Record of a run."""

    id: str
    """Id of the task."""
    options: dict[str, Any] = {}
    """Options of the task that were chosen."""
    training: TrainingCfg
    """Training settings."""
    seed: Seed = 0
    """Seed of everything random."""
    commands: list[str] = []
    """Command lines that started it and continued it."""
    backend: str = 'mujoco'
    """Engine that computes physics, as the run was last continued."""
    device: str = 'cpu'
    """Device that it computes on, and that the networks are on; of several processes, that of the first."""
    nproc: Count = 1
    """Number of processes that learn together, each with `training.env_num` envs, as the run was last continued."""
    versions: dict[str, str] = {}
    """Versions of the packages that it was started with."""

    def provenance(self, progress: Sequence[Progress]) -> dict[str, Any]:
        """Return the entry of a policy file about the run that made it, after that many updates."""
        return {
            'id': self.id,
            'options': self.options,
            'seed': self.seed,
            'settings': self.training.model_dump(mode='json'),
            'commands': self.commands,
            'backend': self.backend,
            'device': self.device,
            'nproc': self.nproc,
            'versions': self.versions,
            'env_steps': progress[-1].steps if progress else 0,
            'wall_seconds': progress[-1].seconds if progress else 0.0,
        }


@dataclass(frozen=True)
class Progress:
    """One update: its number, env steps so far, wall time so far [s], and means over recently ended episodes.

    `level` is the mean of the curriculum over all envs, 0 to 1: where it rises, tasks get harder, and returns smaller.
    """

    iteration: int
    steps: int
    seconds: float
    mean_return: float
    mean_length: float
    steps_per_second: float
    learning_rate: float
    action_std: float
    level: float = 0.0


COLUMNS = tuple(Progress.__dataclass_fields__)


def read_run(folder: Path) -> RunRecord:
    """Read the record of the run in a folder. ValueError if there is none, or it cannot be read."""
    file = folder / RUN
    if not file.is_file():
        raise ValueError(f'{folder} is not a training run: there is no {RUN}')
    try:
        return RunRecord.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise ValueError(f'{file} cannot be read: {error}') from error


def write_run(folder: Path, record: RunRecord) -> None:
    """Make the folder, and write the record of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / RUN) as part:
        part.write_text(record.model_dump_json(indent=2) + '\n')


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder, made if need be, for this process alone; if it is left empty it is removed again.

    ValueError if another process trains in it.
    """
    with _lock(folder) as file:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # or not empty
                (folder / LOCK).unlink()
                folder.rmdir()
            unlock_file(file.fileno())


def _lock(folder: Path) -> TextIO:
    """Return the open lock file of a folder, locked."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack, contextlib.suppress(FileNotFoundError):
            file = stack.enter_context((folder / LOCK).open('w'))
            try:
                lock_file(file.fileno(), str(folder), True, PATIENCE, 'another process trains there', 'process')
            except BlockingIOError:
                raise ValueError(f'another process trains in {folder}: wait for it, or use another --out') from None
            if os.path.samestat(os.fstat(file.fileno()), (folder / LOCK).stat()):
                stack.pop_all()
                return file
        # who had it has deleted it meanwhile, and another may have made a new one


def check_new(folder: Path) -> None:
    """Raise ValueError if a folder is taken, by a run or by anything else."""
    if (folder / RUN).exists():
        raise ValueError(f'{folder} already has a training run: continue it with --resume, or use another --out')
    if folder.exists() and (not folder.is_dir() or any(path.name != LOCK for path in folder.iterdir())):
        raise ValueError(f'{folder} is not empty and is not a training run: use another --out')


def check_same(folder: Path, record: RunRecord, requested: Mapping[str, Any]) -> None:
    """Raise ValueError naming the fields of a RunRecord, or its settings, in which a run differs from the request."""
    for name, wanted in requested.items():
        there = getattr(record, name) if name in RunRecord.model_fields else getattr(record.training, name)
        if there != wanted:
            raise ValueError(
                f'{folder} holds another training run, with {name} = {there!r} instead of {wanted!r}: use another '
                '--out, or leave out what differs'
            )


def read_progress(folder: Path) -> list[Progress]:
    """Read the lines of a run's log; invalid ones, such as a half-written last line, are left out."""
    path = folder / PROGRESS
    if not path.exists():
        return []
    lines = []
    with path.open(newline='', errors='replace') as file:
        lines_of_numbers = (line for line in file if len(line) <= _LONGEST_LINE)
        for row in csv.DictReader(lines_of_numbers, quoting=csv.QUOTE_NONE):
            with contextlib.suppress(TypeError, ValueError, KeyError):
                numbers = {name: float(row.get(name, 0.0)) for name in COLUMNS}  # a new column may be missing
                lines.append(Progress(**{**numbers, 'iteration': int(row['iteration']), 'steps': int(row['steps'])}))
    return lines


def append_progress(folder: Path, progress: Progress) -> None:
    """Add a line to a run's log."""
    path = folder / PROGRESS
    is_new = not path.exists()
    with path.open('a', newline='') as file:
        _write_rows(file, [progress], header=is_new)


def cut_progress(folder: Path, updates: int) -> list[Progress]:
    """Remove the lines after that many updates, which are made again. Returns the lines that are left."""
    kept = [line for line in read_progress(folder) if line.iteration <= updates]
    with replacing(folder / PROGRESS) as part, part.open('w', newline='') as file:
        _write_rows(file, kept, header=True)
    return kept


def _write_rows(file: Any, lines: Iterable[Progress], header: bool) -> None:
    writer = csv.DictWriter(file, COLUMNS)
    if header:
        writer.writeheader()
    writer.writerows(map(asdict, lines))


_SCALES = ((1.0, 's'), (60.0, 'min'), (3600.0, 'h'))


def plot_curve(progress: Sequence[Progress], title: str, path: Path) -> None:
    """Write a PNG file. ImportError if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f'{path.name} needs matplotlib ({error}): {install_hint("cli")}') from error
    seconds = [line.seconds for line in progress]
    unit, name = next((scale for scale in reversed(_SCALES) if seconds and seconds[-1] > 2 * scale[0]), _SCALES[0])
    columns = {
        'env steps [million]': [line.steps / 1e6 for line in progress],
        f'wall time [{name}]': [value / unit for value in seconds],
    }
    rows = {
        'mean return': [line.mean_return for line in progress],
        'mean episode length [steps]': [line.mean_length for line in progress],
    }
    if any(line.level for line in progress):
        rows['level of the curriculum'] = [line.level for line in progress]
    figure = Figure(figsize=(9, 3 * len(rows)), dpi=120, layout='constrained')
    axes = figure.subplots(len(rows), len(columns), sharex='col', sharey='row', squeeze=False)
    for row, (label, values) in enumerate(rows.items()):
        axes[row, 0].set_ylabel(label)
        for column, (over, positions) in enumerate(columns.items()):
            axes[row, column].plot(positions, values, color='#0072b2', lw=1.5)
            axes[row, column].grid(color='#dddddd', lw=0.6)
            axes[-1, column].set_xlabel(over)
    figure.align_ylabels()
    figure.suptitle(title)
    figure.savefig(path, format='png')
