"""Gait of a robot with feet: its power, the height of its swings, and the slip of its feet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from internutopia.rl.state import RobotState
from internutopia.rl.terms.rewards import power_cost
from internutopia.util.arrays import ArrayMaker


@dataclass(frozen=True)
class Gait:
    """Means over envs and time."""

    power: float
    """Mechanical power of all joints, braking counted as well [W]."""
    swing_height: float
    """Rise of a foot between leaving the ground and coming back [m]; 0 if none does."""
    slip: float
    """Speed of feet along the ground while they touch it [m/s]."""
    contact: tuple[float, ...]
    """Share of the time in which each foot touches the ground: as much left and right, if a robot does not limp."""


class GaitMeter:
    """Meter of the figures of a gait; all envs have started together.

    Args:
        arrays: makes arrays of the kind that states have.
        n: number of envs.
        feet: number of feet.
    """

    def __init__(self, arrays: ArrayMaker, n: int, feet: int):
        self._stood = arrays.zeros((n, feet), 'bool')
        self._lift_off = arrays.zeros((n, feet))  # height of a foot when it touched the ground last [m]
        self._peak = arrays.zeros((n, feet))  # greatest height since
        self._seen = arrays.zeros((n, feet), 'bool')  # whether it ever touched the ground
        self.sums = arrays.zeros(6 + feet, 'float64')
        """What was added up so far, for `result`."""

    def add(self, state: RobotState, counts: Any) -> None:
        """Add a step; `counts` bool `(n,)` selects the envs that count."""
        xp, stands, feet = state.xp, state.feet_contacts, state.feet_positions[..., 2]
        counted = counts[:, None]
        landed = stands & ~self._stood & self._seen & counted
        speed = xp.linalg.vector_norm(state.feet_velocities[..., :2], axis=-1)
        figures = [
            xp.where(counts, power_cost(state), 0.0).sum(),
            counts.sum(),
            xp.where(stands & counted, speed, 0.0).sum(),
            (stands & counted).sum(),
            xp.where(landed, self._peak - self._lift_off, 0.0).sum(),
            landed.sum(),
        ]
        figures = xp.stack([xp.astype(figure, self.sums.dtype) for figure in figures])
        touching = xp.astype(stands & counted, self.sums.dtype).sum(axis=0)
        self.sums += xp.concat([figures, touching])
        self._lift_off = xp.where(stands, feet, self._lift_off)
        self._peak = xp.where(stands, feet, xp.maximum(self._peak, feet))
        self._stood, self._seen = stands, self._seen | stands

    def result(self, sums: Sequence[float]) -> Gait:
        """Return the means."""
        power, samples, slip, touching, height, swings, *contact = sums
        return Gait(
            power=power / max(samples, 1.0),
            swing_height=height / max(swings, 1.0),
            slip=slip / max(touching, 1.0),
            contact=tuple(each / max(samples, 1.0) for each in contact),
        )
