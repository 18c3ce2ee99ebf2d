"""Learning curve of a training run: return and episode length over env steps and over wall time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from internutopia.rl.training.run_folder import Progress
from internutopia.util.install import install_hint

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
