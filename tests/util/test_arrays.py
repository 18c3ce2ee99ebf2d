"""Arrays on a device."""

from __future__ import annotations

import numpy as np

from internutopia.util.arrays import DeviceArrays


def test_indices_with_the_same_bytes_are_not_the_same() -> None:
    """They are uploaded once, by their values."""
    arrays = DeviceArrays('cpu')
    assert arrays.index([5]) is arrays.index(np.array([5], np.int32))
    assert arrays.index(np.array([5, 0], np.int32)).tolist() == [5, 0]
    assert arrays.index([[5]]).tolist() == [[5]]
