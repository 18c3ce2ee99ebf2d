"""Normal noise of sensors, reproducible for each env on its own.

The noise of a moment is a function of `Config.seed`, the number of the episode, the time in it and what the noise is
for. So it does not depend on the env id, on other envs or on how often a sensor is read; reading twice gives the same.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np

from internutopia.engines.base import DeviceWorld, World
from internutopia.engines.views import Array
from internutopia.util.arrays import STEP, mix, shift, signed


def noise_key(seed: int, episode_id: int) -> int:
    """Return the key that the noise of an episode depends on, see `World.noise_keys`."""
    return int(np.random.SeedSequence([seed, episode_id]).generate_state(1, np.uint64)[0])


class NormalNoise:
    """Normal noise with a standard deviation of `std`; `purpose` separates it from other noise in the same env."""

    def __init__(self, world: World, purpose: str, std: float):
        self.std = std
        self._world = world
        digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
        self._purpose = np.frombuffer(digest, np.uint64)[0]

    def add_to(self, values: Array, env_ids: Any = ...) -> Array:
        """Return values `(n, ...)` of the envs `env_ids` (all: `...`) with noise; the same array if `std` is 0."""
        if not self.std:
            return values
        world = self._world
        xp, count = world.arrays.xp, math.prod(values.shape[1:])
        steps = np.arange(1, 2 * count + 1, dtype=np.uint64) * STEP
        if isinstance(world, DeviceWorld):
            keys, times, purpose = world.device_noise_keys, world.times.view(xp.int64), signed(self._purpose)
            steps = world.arrays.index(steps.view(np.int64))
        else:
            keys, times, purpose = world.noise_keys, world.times.view(np.uint64), self._purpose
        counters = (keys[env_ids] + mix(times[env_ids] ^ purpose))[:, None] + steps
        uniform = xp.astype(shift(mix(counters), 11) + 1, xp.float64) * 2.0**-53  # (0, 1]
        radius, angle = uniform[:, :count], uniform[:, count:]
        normal = xp.sqrt(-2.0 * xp.log(radius)) * xp.cos(2.0 * np.pi * angle)  # Box and Muller
        return values + xp.astype(self.std * normal.reshape(values.shape), xp.float32)
