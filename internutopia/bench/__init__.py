"""Command `internutopia bench`: the figures that this project promises, measured on the machine at hand.

Each row compares us with a reference in the same process, in turns (`measure.race`); the ratios carry over to other
machines, the absolute figures don't. `ROWS` names the groups of rows; `benchmarks/README.md` explains how to read them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from rich.console import Console

import internutopia_extension
from internutopia.bench import (
    array_api,
    cameras,
    cart_pole,
    contacts,
    distribution,
    furnished,
    gymnasium_robots,
    home,
    lidar,
    list_api,
    memory,
    overhead,
    remote,
    report,
    resets,
    scenes,
    service,
    size,
    walking,
)
from internutopia.bench.measure import Row
from internutopia.config import SimConfig
from internutopia.engines.factory import create_world
from internutopia.util import did_you_mean

ROWS: dict[str, Callable[[bool], list[Row]]] = {
    'list': list_api.list_api,
    'array': array_api.array_api,
    'restarts': array_api.resets,
    'overhead': overhead.overhead,
    'scenes': scenes.different_scenes,
    'contacts': contacts.contacts,
    'ant': gymnasium_robots.ant,
    'humanoid': gymnasium_robots.humanoid,
    'cart_pole': cart_pole.cart_poles,
    'lidar': lidar.lidar_rays,
    'reset': resets.reset_one,
    'start': resets.start_env,
    'furnished': furnished.furnished,
    'home': home.home,
    'memory': memory.memory,
    'size': size.size,
    'walking': walking.walking,
    'cameras': cameras.cameras,
    'remote': remote.remote,
    'distribution': distribution.distribution,
    'service': service.service,
}


def run(
    out: Path | None = None,
    quick: bool = False,
    rows: list[str] | None = None,
    backend: str = 'mujoco',
    device: str = 'cpu',
) -> int:
    """Measure, print the table and save it.

    Args:
        backend: which engine, `'mujoco'` or `'mujoco_warp'`, which has rows of its own.
        device: what that computes on.
        out: folder that gets `bench.json` and `bench.md`; None saves nothing.
        quick: a few steps of small envs, to see that everything works; the figures mean nothing and no bound counts.
        rows: names of groups of rows (`ROWS`, or `warp.ROWS`); None means all.

    Returns:
        Exit status: 1 if a bound was missed, else 0.

    Raises:
        ValueError: an unknown name in `rows`, a device that there is not or that the backend does not have.
        ImportError: what the backend needs is not installed.
        OSError: `out` cannot be written.
    """
    internutopia_extension.import_extensions()
    known = _rows_of(backend, device)
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


def _rows_of(backend: str, device: str) -> Mapping[str, Callable[[bool], list[Row]]]:
    # a world of no envs says what is wrong with a device
    create_world(SimConfig.model_validate({'backend': backend, 'device': device}), 0, np.zeros((0, 3)), True).close()
    if backend == 'mujoco':
        return ROWS
    from internutopia.bench import warp

    return {name: functools.partial(measure, device) for name, measure in warp.ROWS.items()}
