"""Normal noise of sensors, reproducible for each env by itself.

The noise of a moment is a function of `Config.seed`, the number of the episode, the time in it and what the noise is
for. So it does not depend on the env id, on other envs or on how often a sensor is read; reading twice gives the same.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.util.splitmix import STEP, mix
from internutopia.core.world.base import World


def noise_key(seed: int, episode_id: int) -> int:
    """What the noise of an episode depends on, see `World.noise_keys`."""
    return int(np.random.SeedSequence([seed, episode_id]).generate_state(1, np.uint64)[0])


class NormalNoise:
    """Noise with a standard deviation of `std`; `purpose` tells it from other noise in the same env."""

    def __init__(self, world: World, purpose: str, std: float):
        self.std = std
        self._world = world
        digest = hashlib.blake2b(purpose.encode(), digest_size=8).digest()
        self._purpose = np.frombuffer(digest, np.uint64)

    def add_to(self, values: NDArray[np.float32], env_ids: Any = ...) -> NDArray[np.float32]:
        """Values `(n, ...)` of the envs `env_ids` (all: `...`) with noise; the very same array if there is none."""
        if not self.std:
            return values
        keys = self._world.noise_keys[env_ids] + mix(self._world.times[env_ids].view(np.uint64) ^ self._purpose)
        count = int(np.prod(values.shape[1:]))
        counters = keys[:, None] + np.arange(1, 2 * count + 1, dtype=np.uint64) * STEP
        uniform = ((mix(counters) >> np.uint64(11)) + np.uint64(1)) * 2.0**-53  # (0, 1]
        radius, angle = uniform[:, :count], uniform[:, count:]
        normal = np.sqrt(-2.0 * np.log(radius)) * np.cos(2.0 * np.pi * angle)  # Box and Muller
        return values + (self.std * normal.reshape(values.shape)).astype(np.float32)
