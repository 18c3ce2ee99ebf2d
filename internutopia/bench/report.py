"""Report of the measured rows: a table on the terminal, JSON and Markdown."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from rich.console import Console
from rich.table import Table

from internutopia.bench.measure import Row

_HEADERS = ('what', 'ours', 'reference', 'ratio', 'bound', 'verdict')
_STYLES = {'ok': 'green', 'missed': 'red'}


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


def print_table(rows: Sequence[Row], console: Console) -> None:
    """Print the rows."""
    table = Table(*_HEADERS)
    for row in rows:
        style = _STYLES.get(row.verdict, '')
        *values, verdict = _cells(row)
        table.add_row(*values, f'[{style}]{verdict}[/]' if style else verdict)
    console.print(table)


def save(rows: Mapping[str, Sequence[Row]], facts: Mapping[str, str | int], folder: Path) -> None:
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
    """One text per header."""
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
