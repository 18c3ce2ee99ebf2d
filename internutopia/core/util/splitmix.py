"""SplitMix64: random numbers as a function of a counter (Steele, Lea, Flood 2014), for whole arrays of counters.

Counters that are `STEP` apart give a sequence of independent numbers, so each row of an array may have its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

STEP = np.uint64(0x9E3779B97F4A7C15)  # between the counters of a sequence


def mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output function: 64 random bits for each counter."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
