"""PPO of rsl_rl with a bounded learning rate."""

from __future__ import annotations

from rsl_rl.algorithms import PPO
from typing_extensions import override


class BoundedPPO(PPO):
    """PPO whose adaptive learning rate stays within `BOUNDS`.

    Left alone it can fall so low in the first updates, while the policy changes quickly, that a humanoid never learns
    more than to stand.
    """

    BOUNDS = (1e-4, 1e-3)

    @property
    @override
    def learning_rate(self) -> float:
        """Learning rate of the next step of the optimizer."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        low, high = self.BOUNDS
        self._learning_rate = min(max(value, low), high) if self.schedule == 'adaptive' else value
