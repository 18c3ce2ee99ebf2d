"""Conversion of camera pictures to RGB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NO_PICTURE = np.zeros((1, 1, 3), np.uint8)


def to_rgb(data: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Convert a camera's data to RGB `(height, width, 3)`: its colours, or its depth in grey, the nearest brightest.

    Returns one black pixel if it has neither.
    """
    if 'rgba' in data:
        return data['rgba'][..., :3]
    if 'depth' in data:
        nearness = 1.0 / (1.0 + data['depth'])  # infinitely far is 0
        grey = (255.0 * nearness).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=-1)
    return _NO_PICTURE
