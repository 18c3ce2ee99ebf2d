"""Command `internutopia bench`: speed of this machine through both APIs, next to the engine alone.

Each row compares with a reference in the same process, in turns (`measure.race`); the ratios carry over to other
machines, the absolute figures don't. `ROWS` names the groups of rows. The folder `benchmarks/` of the repository has
more of them, and its README explains how to read all.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.table import Table

import internutopia_extension
from internutopia.bench import apis, overhead
from internutopia.bench.measure import Row
from internutopia.util import did_you_mean

_HEADERS = ('what', 'ours', 'reference', 'ratio', 'bound', 'verdict')
_STYLES = {'ok': 'green', 'missed': 'red'}
ROWS: dict[str, Callable[[bool], list[Row]]] = {
    'list': apis.list_api,
    'array': apis.array_api,
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
        if out is not None:  # after each group: a later one may run out of memory
            _save(measured, machine_facts(), out)
    table = [row for group in measured.values() for row in group]
    _print_table(table, console)
    if out is not None:
        console.print(f'saved to {out}')
    return int(not quick and any(row.verdict == 'missed' for row in table))


def machine_facts() -> dict[str, str | int]:
    """Return the processor, system and versions that the figures were measured with."""
    return {
        'cpu': _cpu_model(),
        'cores': os.cpu_count() or 1,
        'system': platform.platform(terse=True),
        'python': platform.python_version(),
        'mujoco': importlib.metadata.version('mujoco'),
        'date': date.today().isoformat(),
    }


def _print_table(rows: Sequence[Row], console: Console) -> None:
    table = Table(*_HEADERS)
    for row in rows:
        style = _STYLES.get(row.verdict, '')
        *values, verdict = _cells(row)
        table.add_row(*values, f'[{style}]{verdict}[/]' if style else verdict)
    console.print(table)


def _save(rows: Mapping[str, Sequence[Row]], facts: Mapping[str, str | int], folder: Path) -> None:
    """Write `bench.json` and `bench.md`. OSError if the folder cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    table = [{'row': name, **row.as_dict()} for name, group in rows.items() for row in group]
    (folder / 'bench.json').write_text(json.dumps({'machine': dict(facts), 'rows': table}, indent=2) + '\n')
    lines = [
        ', '.join(f'{name}: {value}' for name, value in facts.items()),
        '',
        f'| {" | ".join(_HEADERS)} |',
        f'|{"---|" * len(_HEADERS)}',
        *(f'| {" | ".join(_cells(row))} |' for group in rows.values() for row in group),
    ]
    (folder / 'bench.md').write_text('\n'.join(lines) + '\n')


def _cells(row: Row) -> list[str]:
    """Return one text per header."""
    ratio = f'{row.ratio.median:.2f} ({row.ratio.low:.2f} to {row.ratio.high:.2f})' if row.ratio else ''
    bound = '' if row.bound is None else f'{row.limit} {row.bound:g}'
    what = f'{row.what} ({row.note})' if row.note else row.what
    return [what, _number(row.ours, row.unit), _number(row.reference, row.unit), ratio, bound, row.verdict]


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ''
    return f'{value:.0f} {unit}' if abs(value) >= 1000 else f'{value:.3g} {unit}'


def _cpu_model() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    return next((line.split(':', 1)[1].strip() for line in lines if line.startswith('model name')), platform.machine())
