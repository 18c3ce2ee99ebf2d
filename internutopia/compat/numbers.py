"""Numbers that callers of stand-ins pass: one check for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def checked_numbers(what: str, values: Any, count: int) -> NDArray[np.float64]:
    """Return `count` finite numbers as an array `(count,)`; else ValueError that begins with `what`."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if count == 1 and not numbers.ndim:
        numbers = numbers[None]
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ValueError(
            f'{what} must be {"a finite number" if count == 1 else f"{count} finite numbers"}, got {values!r}'
        )
    return numbers
