"""SplitMix64: random numbers as a function of a counter (Steele, Lea, Flood 2014), for whole arrays of counters.

Counters that are `STEP` apart give a sequence of independent numbers, so each row of an array may have its own. On a
device, counters are int64 tensors of the same 64 bits: torch has no arithmetic of uint64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

STEP = np.uint64(0x9E3779B97F4A7C15)  # between the counters of a sequence


def mix(x: Any) -> Any:
    """Return 64 random bits for each counter, uint64; int64 for those of a device."""
    if not isinstance(x, np.ndarray):
        x = (x ^ shift(x, 30)) * signed(0xBF58476D1CE4E5B9)
        x = (x ^ shift(x, 27)) * signed(0x94D049BB133111EB)
        return x ^ shift(x, 31)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def shift(x: Any, places: int) -> Any:
    """Shift the bits to the right, zeros from the left; of signed numbers, too."""
    return (x >> places) & ((1 << (64 - places)) - 1)


def signed(bits: int) -> int:
    """Return 64 bits as a signed number, int64."""
    return int(bits) - ((int(bits) >> 63) << 64)
