"""Efficiency on many cores: what follows from the rows `overhead` of a benchmark, as a table and as an image.

Reads what `internutopia bench --rows overhead --out out/bench` has saved, and applies Amdahl's law to it, see
`internutopia.bench.overhead`::

    python benchmarks/efficiency.py out/bench/bench.json docs/images/efficiency.png
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from internutopia.bench.overhead import efficiency

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CORES = (1, 2, 4, 8, 16, 32, 64, 128)
_STYLES = {'array API': '-', 'plain array API': '--', 'list API': ':'}


def main(saved: Path, picture: Path) -> None:
    """Print the table in Markdown, and write the image (PNG)."""
    # workload -> (API, number of envs) -> efficiency for each number of cores
    curves: dict[str, dict[tuple[str, str], list[float]]] = {}
    print(f'| workload | API | envs | outside physics [us] | {" | ".join(map(str, CORES))} |')
    print('|---|---|---|---|' + '---|' * len(CORES))
    for row in _rows(saved):
        workload, envs, api = row['what'].partition(':')[0].replace(' envs', '').split(', ', 2)
        curve = [efficiency(row['reference'], row['ours'], cores) for cores in CORES]
        curves.setdefault(workload, {})[api, envs] = curve
        print(f'| {workload} | {api} | {envs} | {row["ours"]:.0f} | {" | ".join(f"{value:.2f}" for value in curve)} |')
    _draw(curves).savefig(picture, format='png')


def _rows(saved: Path) -> list[dict[str, Any]]:
    rows = [row for row in json.loads(saved.read_text())['rows'] if row['row'] == 'overhead']
    if not rows:
        raise SystemExit(f'{saved} has no rows of overhead: internutopia bench --rows overhead --out {saved.parent}')
    return rows


def _draw(curves: dict[str, dict[tuple[str, str], list[float]]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * len(curves), 3.4), dpi=80, layout='constrained')
    colors: dict[str, str] = {}
    figure.subplots(1, len(curves), sharey=True, squeeze=False)
    for axes, (workload, lines) in zip(figure.axes, curves.items(), strict=True):
        for (api, envs), curve in lines.items():
            color = colors.setdefault(envs, f'C{len(colors)}')
            label = envs if api == 'array API' else None
            axes.plot(CORES, curve, _STYLES.get(api, '-.'), color=color, label=label)
        axes.set_xscale('log', base=2)
        axes.set_xticks(CORES, map(str, CORES))
        axes.set(title=workload, xlabel='cores', ylim=(0, 1))
        axes.grid(color='#dddddd', lw=0.6)
    figure.axes[0].set_ylabel(
        'efficiency\n(dashed: not compiled, dotted: list API,\ndash-dotted: some envs restart)', fontsize='small'
    )
    figure.axes[0].legend()
    return figure


if __name__ == '__main__':
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
