"""Command `internutopia bench`: speed of this machine through both APIs, next to the engine alone.

Each row compares with a reference in the same process, in turns (`measure.race`); the ratios carry over to other
machines, the absolute figures don't. `ROWS` names the groups of rows. The folder `benchmarks/` of the repository has
more of them, and its README explains how to read all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rich.console import Console

import internutopia_extension
from internutopia.bench import array_api, list_api, overhead, report
from internutopia.bench.measure import Row
from internutopia.util import did_you_mean

ROWS: dict[str, Callable[[bool], list[Row]]] = {
    'list': list_api.list_api,
    'array': array_api.array_api,
    'overhead': overhead.overhead,
}


def run(
    out: Path | None = None,
    quick: bool = False,
    rows: list[str] | None = None,
    known: Mapping[str, Callable[[bool], list[Row]]] = ROWS,
) -> int:
    """Measure, print the table and save it.

    Args:
        out: folder that gets `bench.json` and `bench.md`; None saves nothing.
        quick: a few steps of small envs, to see that everything works; the figures mean nothing and no bound counts.
        rows: names of groups of rows; None means all.
        known: groups of rows that there are, by name.

    Returns:
        Exit status: 1 if a bound was missed, else 0.

    Raises:
        ValueError: an unknown name in `rows`.
        OSError: `out` cannot be written.
    """
    internutopia_extension.import_extensions()
    names = list(known) if rows is None else rows
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise ValueError(f'there is no row {unknown!r}; {did_you_mean(unknown, known)}')
    console = Console()
    measured: dict[str, list[Row]] = {}
    for name in names:
        with console.status(f'measuring {name}'):
            measured[name] = known[name](quick)
    table = [row for group in measured.values() for row in group]
    report.print_table(table, console)
    if out is not None:
        report.save(measured, report.machine_facts(), out)
        console.print(f'saved to {out}')
    return int(not quick and any(row.verdict == 'missed' for row in table))
