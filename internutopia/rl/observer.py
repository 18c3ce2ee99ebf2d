"""Observer: what learners see of envs, and critics beyond it.

All of it is finite and was real. An env that failed shows what was seen there last until its next episode starts, and
so does one in which a term gives a number that is not finite; zeros where there was nothing yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.learning import LearningCfg
from internutopia.engines.env_selection import EnvSelection
from internutopia.rl.faults import DeviceFaults, Faults
from internutopia.rl.managers import ObservationManager
from internutopia.rl.state import RobotState
from internutopia.util.arrays import masked_assign

if TYPE_CHECKING:
    from internutopia.rl.compiled import CompiledStep

Array = NDArray[np.float32]
Bools = NDArray[np.bool_]


class Observer:
    """Observations of all envs.

    Args:
        learning: names the terms.
        state: of the envs.
        episode_ids: the episode that each runs `(n,)`, -1 for none.
        faults: reports numbers that are not finite.

    Attributes:
        policy: manager of what a learner sees.
        critic: manager of what a critic sees beyond it.
        compiled: observes in their place, if there is one.
    """

    def __init__(self, learning: LearningCfg, state: RobotState, episode_ids: Any, faults: Faults):
        self.policy = ObservationManager(learning.observations, state)
        self.critic = ObservationManager(learning.critic_observations, state)
        self.compiled: CompiledStep | None = None
        self._state, self._episode_ids, self._faults = state, episode_ids, faults
        self._looked = self._critic_looked = False  # since the last step
        self._unseen: EnvSelection | None = None  # envs that started since the critic has looked
        self._failed: Bools = state.arrays.zeros(state.env_num, 'bool')  # and were not started anew
        # what was found outside of a step, after which nobody has judged these envs yet
        self._spoilt: Bools = state.arrays.zeros(state.env_num, 'bool')
        self._texts: dict[int, str] = {}
        self._columns: dict[ObservationManager, Any] = {}  # bool `(dim,)`; of a device

    def pass_time(self, envs: EnvSelection, failed: Bools) -> None:
        """A step was made in some envs, and `failed` in some of them `(n,)`."""
        self._looked = self._critic_looked = False
        self._failed = self._state.xp.asarray(failed, copy=True)
        for manager in (self.policy, self.critic):
            manager.pass_time(envs)

    def take_spoilt(self) -> tuple[Bools | None, dict[int, str]]:
        """The envs `(n,)` that cannot go on, since what was to be seen there after the last step was not finite.

        None if there are none; and what it was, by env id, which is not known on a device.
        """
        if not (self._texts or self._state.arrays.on_device):
            return None, {}
        spoilt, texts = self._spoilt, self._texts
        self._spoilt, self._texts = self._state.xp.zeros_like(spoilt), {}
        return spoilt, texts

    def device_faults(self, spoilt: Any) -> list[DeviceFaults]:
        """Return the faults behind these envs `(n,)` on a device since the last call."""
        columns, self._columns = self._columns, {}
        return [DeviceFaults(spoilt, own, manager.fault_in) for manager, own in columns.items()]

    def look(self) -> dict[int, str]:
        """Observe for learners; what is not finite there, by env id, of envs that can still be judged."""
        self._looked = True
        return self._observe(self.policy)

    def observations(self) -> Array:
        """Return the observations of learners `(n, dim)`, not to be written to."""
        if not self._looked:
            self._spoil(self.look())
        return self.policy.last

    def look_at_started(self, envs: EnvSelection) -> None:
        """See the first moments of these envs; what was seen of the others after the step holds."""
        self._first(self.policy, envs)
        self._looked = True

    def first(self, envs: EnvSelection) -> Array:
        """What learners see `(m, dim)` of envs that have just started; the others are not looked at."""
        return self._first(self.policy, envs)

    def critic_observations(self) -> Array:
        """Return the privileged observations `(n, dim)`, constant until the next step or reset; read-only."""
        if not self._critic_looked:
            self._spoil(self._observe(self.critic))
        elif self._unseen is not None:
            self._first(self.critic, self._unseen)
        self._critic_looked, self._unseen = True, None
        return self.critic.last

    def reset(self, envs: EnvSelection) -> None:
        """Episodes start in these envs: there are no older values."""
        for manager in (self.policy, self.critic):
            manager.reset(envs)

    def on_reset(self, envs: EnvSelection) -> None:
        """These envs were reset, and some have an episode now."""
        self._looked = False
        for array in (self._failed, self._spoilt):
            envs.put(array, False)
        if self._texts:
            self._texts = {i: text for i, text in self._texts.items() if self._spoilt[i]}
        if self._critic_looked:
            self._unseen = envs if self._unseen is None else self._unseen.joined(envs)

    def _observe(self, manager: ObservationManager) -> dict[int, str]:
        if self.compiled is None:
            manager.compute()
        else:
            self.compiled.observe(manager)
        before = manager.before if manager.before.shape == manager.last.shape else 0.0
        if self._state.arrays.on_device or self._failed.any():
            masked_assign(manager.last, self._failed, before)
        return self._kept_finite(manager, before, self._episode_ids >= 0)

    def _first(self, manager: ObservationManager, envs: EnvSelection) -> Array:
        rows = manager.first(envs)
        if not self._state.arrays.on_device and np.isfinite(rows).all():
            return rows
        started = self._state.xp.zeros_like(self._failed)
        envs.put(started, True)
        self._spoil(self._kept_finite(manager, 0.0, started & (self._episode_ids >= 0)))
        return envs.take(manager.last)

    def _kept_finite(self, manager: ObservationManager, before: Any, envs: Bools) -> dict[int, str]:
        """Have what was `before` stand in those of some envs `(n,)` where a manager's numbers are not finite.

        What it was, by env id; a device notes it.
        """
        finite = self._state.xp.isfinite(manager.last)
        if not self._state.arrays.on_device:
            if finite.all():
                return {}
            spoilt = envs & ~finite.all(axis=-1)
            texts = self._faults.named(spoilt, manager.fault)
            masked_assign(manager.last, spoilt, before)
            return texts
        spoilt = envs & ~finite.all(axis=-1)
        columns = (spoilt[:, None] & ~finite).any(axis=0)
        self._columns[manager] = columns | self._columns[manager] if manager in self._columns else columns
        masked_assign(manager.last, spoilt, before)
        self._spoilt |= spoilt
        return {}

    def _spoil(self, texts: dict[int, str]) -> None:
        """Make envs fail in their next step."""
        if texts:
            self._spoilt[list(texts)] = True
            self._texts |= texts
