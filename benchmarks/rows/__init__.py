"""Groups of rows: those of `internutopia bench`, and all others."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import internutopia_extension
from benchmarks.rows import (
    cameras,
    cart_pole,
    contacts,
    distribution,
    furnished,
    gymnasium_robots,
    home,
    large,
    lidar,
    memory,
    playground,
    policy,
    remote,
    resets,
    restarts,
    scenes,
    service,
    size,
    walking,
)
from internutopia import bench
from internutopia.bench.measure import Row
from internutopia.config import SimConfig
from internutopia.engines.factory import create_world

ROWS: dict[str, Callable[[bool], list[Row]]] = {
    **bench.ROWS,
    'restarts': restarts.restarts,
    'scenes': scenes.different_scenes,
    'contacts': contacts.contacts,
    'ant': gymnasium_robots.ant,
    'humanoid': gymnasium_robots.humanoid,
    'playground': playground.playground,
    'cart_pole': cart_pole.cart_poles,
    'lidar': lidar.lidar_rays,
    'reset': resets.reset_one,
    'start': resets.start_env,
    'furnished': furnished.furnished,
    'home': home.home,
    'large': large.large,
    'memory': memory.memory,
    'size': size.size,
    'walking': walking.walking,
    'cameras': cameras.cameras,
    'policy': policy.policy,
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
    """Measure, print the table and save it, see `internutopia.bench.run`.

    Args:
        out: folder that gets `bench.json` and `bench.md`; None saves nothing.
        quick: a few steps of small envs, to see that everything works; the figures mean nothing and no bound counts.
        rows: names of groups of rows (`ROWS`, or `warp.ROWS`); None means all.
        backend: engine, `'mujoco'` or `'mujoco_warp'`, which has its own rows.
        device: device that `'mujoco_warp'` computes on.

    Returns:
        Exit status: 1 if a bound was missed, else 0.

    Raises:
        ValueError: an unknown name in `rows`, a device that there is not or that the backend does not have.
        ImportError: a package that the backend needs is not installed.
        OSError: `out` cannot be written.
    """
    internutopia_extension.import_extensions()
    return bench.run(out, quick, rows, _rows_of(backend, device))


def _rows_of(backend: str, device: str) -> Mapping[str, Callable[[bool], list[Row]]]:
    # a world of no envs raises the errors of a device
    create_world(SimConfig.model_validate({'backend': backend, 'device': device}), 0, np.zeros((0, 3)), True).close()
    if backend == 'mujoco':
        return ROWS
    from benchmarks.rows import warp

    return {name: functools.partial(measure, device) for name, measure in warp.ROWS.items()}
