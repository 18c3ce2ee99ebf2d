"""Statistics of features, of an episode and of all of them, as LeRobot's tables have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Statistics = dict[str, NDArray[Any]]

_QUANTILES = {'q01': 0.01, 'q10': 0.1, 'q50': 0.5, 'q90': 0.9, 'q99': 0.99}


def row_statistics(rows: NDArray[Any]) -> Statistics:
    """Compute statistics of `(n, ...)` rows, each of the shape of a row, `(1,)` for numbers; `count` is n, `(1,)`."""
    values = rows.astype(np.float64).reshape(len(rows), *(rows.shape[1:] or (1,)))
    quantiles = np.quantile(values, list(_QUANTILES.values()), axis=0)
    return {
        'min': values.min(0),
        'max': values.max(0),
        'mean': values.mean(0),
        'std': values.std(0),
        'count': np.array([len(rows)]),
        **dict(zip(_QUANTILES, quantiles, strict=True)),
    }


def pixel_statistics(pixels: NDArray[np.uint8], frames: int) -> Statistics:
    """Compute statistics of a sample of pictures' colours, `(k, 3)`: `(3, 1, 1)` from 0 to 1, `count` is the frames."""
    shaped = {name: value.reshape(3, 1, 1) for name, value in row_statistics(pixels / 255.0).items() if name != 'count'}
    return {**shaped, 'count': np.array([frames])}


def merged_statistics(parts: Sequence[Statistics]) -> Statistics:
    """Merge statistics of parts of the rows to those of all rows; of quantiles, which cannot be merged, the mean."""
    counts = np.array([part['count'][0] for part in parts], np.float64)

    def mean(name: str) -> NDArray[np.float64]:
        return np.average([part[name] for part in parts], axis=0, weights=counts)

    total = mean('mean')
    spread = [part['std'] ** 2 + (part['mean'] - total) ** 2 for part in parts]
    return {
        'min': np.min([part['min'] for part in parts], axis=0),
        'max': np.max([part['max'] for part in parts], axis=0),
        'mean': total,
        'std': np.sqrt(np.average(spread, axis=0, weights=counts)),
        'count': np.array([int(counts.sum())]),
        **{name: mean(name) for name in _QUANTILES},
    }
