"""Random numbers of envs: a separate stream for each episode.

What an episode samples depends on the seed of the run and on its number alone: not on the env that it runs in, on the
other envs, or on the process that they are in. Numbers are float32, like those of `DeviceRandom` on a device, with the
same functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.arrays import STEP, mix

Floats = NDArray[np.float32]
_UNIT = np.float32(2.0**-24)
_STEPS = np.arange(1, 65, dtype=np.uint64) * STEP  # of few numbers, as most are drawn


class EnvRandom:
    """The part of `numpy.random.Generator` that terms use, with a row for each env.

    The first axis of every `size` is that of the envs: all of them, or those of `for_envs`. ValueError for another one.

    Args:
        env_num: number of envs.
        counters: of the streams `(n,)`; None means zeros, until episodes start.
    """

    def __init__(self, env_num: int, counters: NDArray[np.uint64] | None = None):
        self.counters = np.zeros(env_num, np.uint64) if counters is None else counters
        self._env_ids: Any = slice(None)

    def start(self, env_ids: NDArray[np.intp], keys: NDArray[np.uint64]) -> None:
        """Start episodes in these envs `(m,)`, with the keys `(m,)` of their streams."""
        self.counters[env_ids] = mix(keys)

    @contextmanager
    def for_envs(self, env_ids: NDArray[np.intp]) -> Iterator[None]:
        """Return a context in which numbers are sampled for these envs."""
        before, self._env_ids = self._env_ids, env_ids
        try:
            yield
        finally:
            self._env_ids = before

    def random(self, size: Any = ()) -> Floats:
        """Sample uniformly in [0, 1)."""
        return (self._bits(size) >> np.uint32(8)) * _UNIT

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = ()) -> Floats:
        """Sample uniformly in [low, high); numbers or sequences that broadcast against `size`."""
        low, high = np.asarray(low, np.float32), np.asarray(high, np.float32)
        values = (self._bits(size) >> np.uint32(8)) * _UNIT
        values *= high - low
        values += low
        return values

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = ()) -> Floats:
        """Sample normally with mean `loc` and standard deviation `scale` (Box and Muller)."""
        radius, angle = 1.0 - self.random(size), self.random(size)
        noise = np.sqrt(-2.0 * np.log(radius)) * np.cos(np.float32(2.0 * np.pi) * angle)
        return np.asarray(loc, np.float32) + np.asarray(scale, np.float32) * noise

    def integers(self, low: int, high: int | None = None, size: Any = ()) -> NDArray[np.int64]:
        """Sample integers in [low, high), or in [0, low) without `high`; fewer than 2**32 of them."""
        first, end = (0, low) if high is None else (low, high)
        scaled = self._bits(size).astype(np.uint64) * np.uint64(end - first)
        return (scaled >> np.uint64(32)).astype(np.int64) + first

    def _bits(self, size: Any) -> NDArray[np.uint32]:
        shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
        counters = self.counters[self._env_ids].copy()  # of all envs, a view
        if not shape or shape[0] != len(counters):
            raise ValueError(f'random numbers have a row for each of {len(counters)} envs, got size={size!r}')
        count = math.prod(shape[1:])
        steps = _STEPS[: (count + 1) // 2]  # two numbers of each 64 bits
        if count > 2 * len(_STEPS):
            steps = np.arange(1, (count + 1) // 2 + 1, dtype=np.uint64) * STEP
        self.counters[self._env_ids] = counters + steps[-1] if count else counters
        return mix(counters[:, None] + steps).view(np.uint32)[:, :count].reshape(shape)
