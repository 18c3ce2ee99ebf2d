"""Mimic joints: joints whose targets follow from those of others, such as arms that swing with the legs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from internutopia.config.robot import MimicCfg
from internutopia.util import did_you_mean
from internutopia.util.arrays import ArrayMaker


class MimicJoints:
    """Joints that mimic some of the joints `leaders`, as in URDF (`<mimic>`), but of any number of them.

    Attributes:
        configs: what each of them mimics, by name.

    Raises KeyError when made if one mimics a joint that is not among the leaders.
    """

    def __init__(self, configs: Mapping[str, MimicCfg], leaders: Sequence[str], arrays: ArrayMaker):
        self.configs = dict(configs)
        self._xp = arrays.xp
        multipliers = np.zeros((len(leaders), len(configs)), np.float32)
        for column, (name, cfg) in enumerate(configs.items()):
            for leader, multiplier in cfg.multipliers.items():
                if leader not in leaders:
                    hint = did_you_mean(leader, leaders)
                    raise KeyError(f'joint {name!r} mimics joint {leader!r}, which is not driven; {hint}')
                multipliers[leaders.index(leader), column] = multiplier
        self._multipliers = arrays.asarray(multipliers)
        self._offsets = arrays.asarray(np.array([cfg.offset for cfg in configs.values()], np.float32))

    def positions(self, leaders: Any) -> Any:
        """Return position targets `(..., m)` for those of the leaders `(..., k)` [rad or m]; NaN if one of these is."""
        return self.velocities(leaders) + self._offsets

    def velocities(self, leaders: Any) -> Any:
        """Return velocity targets `(..., m)` for those of the leaders `(..., k)` [rad/s or m/s], likewise."""
        return (leaders[..., None] * self._multipliers).sum(axis=-2)
