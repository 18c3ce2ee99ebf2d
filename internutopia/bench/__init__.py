"""`internutopia bench`: the figures that this project promises, measured on the machine at hand.

Each row compares us with a reference in the same process, in turns (`measure.race`); the ratios carry over to other
machines, the absolute figures don't. `ROWS` names the groups of rows; `benchmarks/README.md` explains how to read them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

import internutopia_extension
from internutopia.bench import (
    ant,
    array_door,
    cameras,
    distribution,
    front_doors,
    furnished,
    lidar,
    memory,
    remote,
    report,
    resets,
    scenes,
    service,
    walking,
)
from internutopia.bench.measure import Row
from internutopia.core.util import did_you_mean

ROWS: dict[str, Callable[[bool], list[Row]]] = {
    'list': front_doors.list_front_door,
    'array': array_door.array_front_door,
    'restarts': array_door.restarts,
    'scenes': scenes.different_scenes,
    'ant': ant.ant,
    'lidar': lidar.lidar_rays,
    'reset': resets.reset_one,
    'start': resets.start_env,
    'furnished': furnished.furnished,
    'memory': memory.memory,
    'walking': walking.walking,
    'cameras': cameras.cameras,
    'remote': remote.remote,
    'distribution': distribution.distribution,
    'service': service.service,
}


def run(out: Path | None = None, quick: bool = False, rows: list[str] | None = None) -> int:
    """Measure, print the table and save it.

    Args:
        out: folder that gets `bench.json` and `bench.md`; None saves nothing.
        quick: a few steps of small envs, to see that everything works; the figures mean nothing and no bound counts.
        rows: names of groups of rows (`ROWS`); None means all.

    Returns:
        Exit status: 1 if a bound was missed, else 0.

    Raises:
        ValueError: an unknown name in `rows`.
        OSError: `out` cannot be written.
    """
    names = list(ROWS) if rows is None else rows
    unknown = next((name for name in names if name not in ROWS), None)
    if unknown is not None:
        raise ValueError(f'there is no row {unknown!r}; {did_you_mean(unknown, ROWS)}')
    internutopia_extension.import_extensions()
    console = Console()
    measured: dict[str, list[Row]] = {}
    for name in names:
        with console.status(f'measuring {name}'):
            measured[name] = ROWS[name](quick)
    table = [row for group in measured.values() for row in group]
    report.print_table(table, console)
    if out is not None:
        report.save(measured, report.machine_facts(), out)
        console.print(f'saved to {out}')
    return int(not quick and any(row.verdict == 'missed' for row in table))
