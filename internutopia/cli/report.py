"""Reports on the terminal: a progress bar while a run goes on, tables of figures at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from internutopia.cli.loop import Result, RunStats


class ProgressBar(Progress):
    """Progress bar on the terminal of stderr: episodes, steps/s and real-time factor; nothing if there is none.

    Args:
        total: number of episodes; None if they never run out.
        quiet: show nothing.
    """

    def __init__(self, total: int | None, quiet: bool):
        console = Console(stderr=True)
        super().__init__(
            TextColumn('episodes'),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn('{task.fields[speed]}'),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task = self.add_task('', total=total, speed='')
        self._shown: tuple[float, int] = (0.0, 0)

    def show(self, stats: RunStats) -> None:
        """Update the bar after a step."""
        if self.disable:
            return
        wall, before = stats.wall_seconds, self._shown
        if wall - before[0] > 0.5:
            self._shown = (wall, stats.env_steps)
            rate = (stats.env_steps - before[1]) / (wall - before[0])
            speed = f'{rate:,.0f} steps/s, {rate * stats.step_seconds:.1f} x real time'
            self.update(self._task, completed=stats.done + len(stats.results), speed=speed)


def print_summary(stats: RunStats, files: Iterable[Path]) -> None:
    """Print ends and metrics by task and scene, the speed, and the files that were written."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120  # a log has room for whole names
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in stats.results:
        scene = Path(result.scene).name if result.scene else '-'
        groups.setdefault((result.task or '-', scene), []).append(result)
    for table in (_episode_table(groups), _metric_table(groups)):
        if table.row_count:
            console.print(table, end='\n\n')
    wall = max(stats.wall_seconds, 1e-9)
    unfinished = f', {stats.unfinished} unfinished' if stats.unfinished else ''
    before = f' ({stats.done} were finished before)' if stats.done else ''
    lines = [
        f'{len(stats.results)} episodes finished{before}{unfinished}: {stats.env_steps:,} env steps in {wall:.1f} s',
        f'{stats.env_steps / wall:,.0f} env steps/s, {stats.simulated_seconds / wall:.1f} x real time',
        *map(str, files),
    ]
    console.print('\n'.join(lines), markup=False, soft_wrap=True)


def _episode_table(groups: Mapping[tuple[str, str], list[Result]]) -> Table:
    table = make_table('task', 'scene', numbers=('episodes', 'mean steps', 'terminated', 'truncated', 'errors'))
    for group, results in groups.items():
        table.add_row(
            *group,
            str(len(results)),
            f'{np.mean([result.steps for result in results]):.1f}',
            str(sum(result.terminated for result in results)),
            str(sum(result.truncated for result in results)),
            str(sum(result.error is not None for result in results)),
        )
    return table


def _metric_table(groups: Mapping[tuple[str, str], list[Result]]) -> Table:
    table = make_table('task', 'scene', 'metric', numbers=('mean', 'min', 'max'))
    for group, results in groups.items():
        values: dict[str, list[float]] = {}
        for result in results:
            for name, value in result.metrics.items():
                if isinstance(value, int | float | np.number):
                    values.setdefault(name, []).append(float(value))
        for name, each in values.items():
            table.add_row(*group, name, *(f'{figure:.4g}' for figure in (np.mean(each), min(each), max(each))))
    return table


def make_table(*texts: str, numbers: Iterable[str]) -> Table:
    """Return a table without rows: columns of text, then columns of numbers."""
    table = Table(box=None, header_style='bold', padding=(0, 2, 0, 0), pad_edge=False)
    for header in texts:
        table.add_column(header, overflow='fold')
    for header in numbers:
        table.add_column(header, justify='right')
    return table


def print_figures(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str] = (), names: int = 1
) -> None:
    """Print a table of figures, whose first columns hold names; notes stand below it."""
    table = make_table(*columns[:names], numbers=columns[names:])
    table.show_header = any(columns)
    for row in rows:
        table.add_row(*(Text(each) for each in row[:names]), *row[names:])
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = 160  # a log has room for all columns
    console.print(title, soft_wrap=True)
    console.print(table)
    for note in notes:
        console.print(note, soft_wrap=True)
