"""Compares ratios of a run of the benchmarks with those kept for this kind of machine, and keeps new ones.

    python benchmarks/history.py out/bench/bench.json             exit status 1 if a ratio is worse beyond the spread
    python benchmarks/history.py out/bench/bench.json --keep      append them to benchmarks/history.jsonl
    python benchmarks/history.py --picture history.png            draw what is kept for this kind of machine

Worse beyond the spread: the quartiles of the new turns lie on the wrong side of those that are kept. A row that only
one of the two has is not compared. A kind of machine is its processor and number of cores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from internutopia.bench import machine_facts

HISTORY = Path(__file__).resolve().parent / 'history.jsonl'
Ratios = dict[str, list[float]]  # lower quartile, median, upper quartile by row


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status; None stands for the arguments of the program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('bench', type=Path, nargs='?', help='bench.json of a run of the benchmarks')
    parser.add_argument('--keep', action='store_true', help='append its ratios to the history')
    parser.add_argument('--picture', type=Path, help='file of a picture of the history')
    parser.add_argument('--history', type=Path, default=HISTORY, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.bench is None and options.picture is None:
        parser.error('name the bench.json of a run, or a file for the picture')
    worse: list[str] = []
    if options.bench is not None:
        run = json.loads(options.bench.read_text())
        kept = kept_ratios(options.history, run['machine'])
        worse = list(compare(run['rows'], kept[-1]['ratios'] if kept else {}))
        print(*worse or ['no ratio is worse than those that are kept' if kept else 'nothing is kept yet'], sep='\n')
        if options.keep:
            keep(options.history, run)
    if options.picture is not None:
        draw(kept_ratios(options.history, machine_facts()), options.picture)
    return int(bool(worse))


def kept_ratios(history: Path, machine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what is kept for this kind of machine, oldest first."""
    lines = history.read_text().splitlines() if history.exists() else []
    return [line for line in map(json.loads, lines) if all(line[key] == machine[key] for key in ('cpu', 'cores'))]


def compare(rows: Sequence[Mapping[str, Any]], kept: Ratios) -> Iterator[str]:
    """Yield a line for each row whose quartiles lie beyond those that are kept, on the wrong side."""
    for row in rows:
        name = _name(row)
        if row['ratio'] is None or name not in kept:
            continue
        low, median, high = kept[name]
        better_below = row['limit'] == 'at most'
        if row['ratio_low'] > high if better_below else row['ratio_high'] < low:
            spread = f'({row["ratio_low"]:.2f} to {row["ratio_high"]:.2f})'
            yield f'{name}: {row["ratio"]:.2f} {spread}, kept {median:.2f} ({low:.2f} to {high:.2f})'


def keep(history: Path, run: Mapping[str, Any]) -> None:
    """Append the ratios of a run; rows that it did not measure stay as they were kept before."""
    machine, kept = run['machine'], kept_ratios(history, run['machine'])
    ratios: Ratios = dict(kept[-1]['ratios']) if kept else {}
    for row in run['rows']:
        if row['ratio'] is not None:
            values = (row['ratio_low'], row['ratio'], row['ratio_high'])
            ratios[_name(row)] = [round(value, 3) for value in values]
    commit = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], capture_output=True, text=True, cwd=HISTORY.parent)
    line = {key: machine[key] for key in ('date', 'cpu', 'cores', 'python', 'mujoco')}
    with history.open('a') as file:
        file.write(json.dumps({'commit': commit.stdout.strip(), **line, 'ratios': ratios}) + '\n')


def _name(row: Mapping[str, Any]) -> str:
    return f'{row["row"]}: {row["what"]}'


def draw(kept: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Draw the ratios of each row over the commits that are kept, with their quartiles."""
    import matplotlib

    matplotlib.use('Agg')
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5), layout='constrained')
    for name in dict.fromkeys(name for line in kept for name in line['ratios']):
        points = [(k, *line['ratios'][name]) for k, line in enumerate(kept) if name in line['ratios']]
        places, low, median, high = zip(*points, strict=True)
        axes.plot(places, median, marker='o', label=name)
        axes.fill_between(places, low, high, alpha=0.15)
    axes.set_xticks(range(len(kept)), [f'{line["commit"]}\n{line["date"]}' for line in kept])
    axes.set_ylabel('ratio')
    axes.legend(fontsize='x-small', loc='center left', bbox_to_anchor=(1.0, 0.5))
    figure.savefig(file, dpi=120)


if __name__ == '__main__':
    sys.exit(main())
