"""Where envs stand: on a near-square grid."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def env_origins(env_num: int, size: float) -> NDArray[np.float64]:
    """World positions of the env frames, `(env_num, 3)` [m].

    Env `i` stands at `(i // columns * size, i % columns * size, 0)` with `columns = ceil(sqrt(env_num))`; the side of
    the grid is at most `size * sqrt(env_num)` long.
    """
    columns = math.isqrt(env_num - 1) + 1
    ids = np.arange(env_num, dtype=np.float64)
    return np.stack([ids // columns * size, ids % columns * size, np.zeros(env_num)], axis=-1)
