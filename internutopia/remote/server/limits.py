"""Rate limit: how often a user may ask."""

from __future__ import annotations

import time
from collections.abc import Callable

from internutopia.remote.server.errors import retry_later


class RateLimit:
    """Token buckets: requests of each user, refilled at a steady rate.

    Args:
        rate: requests per second.
        burst: size of the bucket.
        clock: gives the time [s].
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic):
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # requests left, at which time

    def take(self, user: str) -> None:
        """Count a request. ServiceError if there were too many."""
        now = self._clock()
        left, then = self._buckets.get(user, (float(self._burst), now))
        left = min(self._burst, left + (now - then) * self._rate)
        if left < 1.0:
            message = f'more than {self._rate:g} requests per second (and {self._burst} at once)'
            raise retry_later(429, 'rate_limited', message, (1.0 - left) / self._rate)
        self._buckets[user] = (left - 1.0, now)
