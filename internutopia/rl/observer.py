"""Observations of envs for learners, and for critics beyond them.

All of them are finite and were real. An env that failed keeps its last observation until its next episode starts, and
so does one in which a term gives a number that is not finite; zeros where there was none yet. Such faults are named
with their term, env and step: on the host at once, on a device, which the host does not wait for, a step or two later,
when the env has ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.learning import LearningCfg, ObservationTermCfg
from internutopia.engines.env_selection import EnvSelection
from internutopia.rl.faults import DeviceFaults, Faults
from internutopia.rl.observation_groups import GroupedObservations, Observations
from internutopia.rl.state import RobotState
from internutopia.rl.terms import look_up_term
from internutopia.rl.terms.registry import LookUp
from internutopia.util.arrays import masked_assign, to_host
from internutopia.util.memory import machine_memory

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
        groups: named groups of what a learner sees; None where it sees one array.
        critic_groups: named groups of what a critic sees beyond them; None likewise.
        compiled: computes the observations of a manager in its place, of all envs (None) or of those that have started,
            and returns True if all numbers are finite; None without compiled terms.
    """

    def __init__(self, learning: LearningCfg, state: RobotState, episode_ids: Any, faults: Faults):
        self.policy = ObservationManager(learning.terms(privileged=False), state)
        self.critic = ObservationManager(learning.terms(privileged=True), state)
        named = isinstance(learning.observations, dict)
        self.groups = GroupedObservations(learning.groups(privileged=False), state) if named else None
        self.critic_groups = GroupedObservations(learning.groups(privileged=True), state) if named else None
        self._delaying = [manager for manager in (self.policy, self.critic) if manager.delayed]
        self.compiled: Callable[[ObservationManager, NDArray[np.intp] | None], bool] | None = None
        self._state, self._episode_ids, self._faults = state, episode_ids, faults
        self._current = self._critic_current = False  # computed since the last step
        self._started: EnvSelection | None = None  # envs that started since the critic's were computed
        self._failed: Bools = state.arrays.zeros(state.env_num, 'bool')  # and were not started again
        # what was found outside of a step, and ends the episodes of these envs in the next one
        self._invalid: Bools = state.arrays.zeros(state.env_num, 'bool')
        self._errors: dict[int, str] = {}
        self._columns: dict[ObservationManager, Any] = {}  # bool `(dim,)`; of a device

    def step(self, envs: EnvSelection, failed: Bools) -> dict[int, str]:
        """Observe for learners after a step of some envs, which `failed` in some of them `(n,)`.

        Returns what is not finite there, by env id, of envs whose step can still be evaluated as failed. On a device
        observations are computed when they are read.
        """
        self._critic_current = False
        self._failed = self._state.xp.asarray(failed, copy=True)
        for manager in self._delaying:
            manager.advance(envs)
        self._current = not self._state.arrays.on_device
        faults = self._observe(self.policy) if self._current else {}
        for groups in (self.groups, self.critic_groups):
            if groups is not None:
                groups.step()
        return faults

    def take_invalid(self) -> tuple[Bools | None, dict[int, str]]:
        """Return the envs `(n,)` that cannot go on, since their observation after the last step was not finite.

        None if there are none; and the reasons by env id, which are not known on a device.
        """
        if not (self._errors or self._state.arrays.on_device):
            return None, {}
        invalid, errors = self._invalid, self._errors
        self._invalid, self._errors = self._state.xp.zeros_like(invalid), {}
        return invalid, errors

    def device_faults(self, envs: Any) -> list[DeviceFaults]:
        """Return the faults behind these envs `(n,)` on a device since the last call."""
        found, self._columns = self._columns, {}
        return [DeviceFaults(envs, own, manager.fault_in) for manager, own in found.items()]

    def observations(self) -> Observations:
        """Return the observations of learners `(n, ...)`, not to be written to."""
        if not self._current:
            self._current = True
            self._fail(self._observe(self.policy))
        if self.groups is None:
            return self.policy.last
        groups = self.groups.compute(self.policy.last, self.policy.sizes, self._failed)
        self._remember_critic()
        return _only(groups)

    def last(self) -> Observations:
        """Return the last observations of learners `(n, ...)`, not to be written to."""
        return self.policy.last if self.groups is None else _only(self.groups.last())

    def observe_started(self, envs: EnvSelection) -> None:
        """Observe these envs, which have just started; the observations of the others after the step hold."""
        self._first(self.policy, envs)
        self._current = True

    def first(self, envs: EnvSelection) -> Observations:
        """Compute observations of learners `(m, ...)` in envs that have just started, and not in the others."""
        flat = self._first(self.policy, envs)
        if self.groups is None:
            return flat
        groups = self.groups.first(flat, self.policy.sizes, envs)
        self._remember_critic()
        return _only(groups)

    def critic_observations(self) -> Observations:
        """Return what critics see, constant until the next step or reset; read-only.

        `(n, dim)`, the privileged observations behind the others; of named groups all of them.
        """
        renew = not self._critic_current or self._started is not None
        if not self._critic_current:
            self._fail(self._observe(self.critic))
        elif self._started is not None:
            self._first(self.critic, self._started)
        self._critic_current, self._started = True, None
        if self.groups is None or self.critic_groups is None:
            return self._state.xp.concat([self.policy.last, self.critic.last], axis=-1)
        if renew:
            self.critic_groups.compute(self.critic.last, self.critic.sizes, self._failed)
        return {**self.groups.last(), **self.critic_groups.last()}

    def reset(self, envs: EnvSelection) -> None:
        """Forget older values in these envs, where episodes start."""
        for each in (*self._delaying, self.groups, self.critic_groups):
            if each is not None:
                each.reset(envs)

    def on_reset(self, envs: EnvSelection) -> None:
        """Forget what was found in these envs, which were reset; some have an episode now."""
        self._current = False
        for array in (self._failed, self._invalid):
            envs.put(array, False)
        if self._errors:
            self._errors = {i: error for i, error in self._errors.items() if self._invalid[i]}
        if self._critic_current:
            self._started = envs if self._started is None else self._started.joined(envs)

    def _remember_critic(self) -> None:
        """Compute what critics see if a later step shows it, too."""
        if self.critic_groups is not None and self.critic_groups.remembers:
            self.critic_observations()

    def _observe(self, manager: ObservationManager) -> dict[int, str]:
        """Compute the observations of a manager; returns what was not finite and is replaced, by env id."""
        on_device = self._state.arrays.on_device
        if self.compiled is None:
            manager.compute()
            finite = not on_device and np.isfinite(manager.last).all()
        else:
            finite = self.compiled(manager, None)
        before = manager.before if manager.before.shape == manager.last.shape else 0.0
        if on_device or np.count_nonzero(self._failed):
            masked_assign(manager.last, self._failed, before)
        if finite:
            return {}
        return self._replace_invalid(manager, before, self._episode_ids >= 0)

    def _first(self, manager: ObservationManager, envs: EnvSelection) -> Array:
        if self.compiled is not None and manager.sizes:
            if self.compiled(manager, envs.ids):
                return envs.take(manager.last)
        else:
            rows = manager.first(envs)
            if not self._state.arrays.on_device and np.isfinite(rows).all():
                return rows
        started = self._state.xp.zeros_like(self._failed)
        envs.put(started, True)
        self._fail(self._replace_invalid(manager, 0.0, started & (self._episode_ids >= 0)))
        return envs.take(manager.last)

    def _replace_invalid(self, manager: ObservationManager, before: Any, envs: Bools) -> dict[int, str]:
        """Replace observations by those `before` in those of some envs `(n,)` where numbers are not finite.

        Returns the faults by env id; on a device they are reported later.
        """
        finite = self._state.xp.isfinite(manager.last)
        invalid = envs & ~finite.all(axis=-1)
        faults: dict[int, str] = {}
        if self._state.arrays.on_device:
            found = (invalid[:, None] & ~finite).any(axis=0)
            self._columns[manager] = found | self._columns[manager] if manager in self._columns else found
            self._invalid |= invalid
        else:
            faults = self._faults.named(invalid, manager.fault)
        masked_assign(manager.last, invalid, before)
        return faults

    def _fail(self, errors: dict[int, str]) -> None:
        """Make envs fail in their next step."""
        if errors:
            self._invalid[list(errors)] = True
            self._errors |= errors


def _only(groups: dict[str, Any]) -> Observations:
    """Return the only group, or all of several."""
    return next(iter(groups.values())) if len(groups) == 1 else groups


class ObservationManager:
    """Observation terms side by side, `(n, dim)`.

    Attributes:
        last: what was computed last.
        before: what that was before.
        sizes: number of columns of each term, once something was computed.
        histories: of each term that is delayed, once an episode has started, `delay + 1` arrays `(n, k)`, oldest first.
        delayed: indices of the terms that are delayed.
    """

    def __init__(self, configs: Sequence[ObservationTermCfg], state: RobotState, look_up: LookUp = look_up_term):
        self._state = state
        self._terms = [(cfg, look_up('observation', cfg.term, cfg.params)) for cfg in configs]
        self.delayed = [index for index, cfg in enumerate(configs) if cfg.delay]
        self.histories: list[list[Array] | None] = [None] * len(configs)
        self.last: Array = state.arrays.zeros((state.env_num, 0))
        self.before: Array = self.last
        self.sizes: list[int] = []
        self._noisy = [index for index, cfg in enumerate(configs) if cfg.noise]
        self._scaled: list[tuple[int, float | None, Any]] | None = None  # index, clip and factor of terms

    def compute(self) -> Array:
        """Compute the observations now; they are kept as `last`, not to be written to."""
        if self._terms:
            self.before, self.last = self.last, self._joined(self._values())
        return self.last

    def first(self, selection: EnvSelection) -> Array:
        """Compute the first observations of episodes in these envs, `(m, dim)`, without touching the other envs."""
        if not self._terms:
            return selection.take(self.last)
        rows = slice(None) if self._state.arrays.on_device else selection.ids
        values = [value[rows] for value in self._values(delayed=False)]
        with self._state.rng.for_envs(selection.ids) if self._noisy else nullcontext():
            first = self._joined(values)
        selection.put(self.last, first)
        return first

    def fault(self, env_id: int) -> str:
        """Return a text that names the term whose numbers in `last` are not all finite in an env."""
        return self.fault_in(to_host(~self._state.xp.isfinite(self.last[env_id])))

    def fault_in(self, columns: NDArray[np.bool_]) -> str:
        """Return the same, of the columns `(dim,)` that have such numbers."""
        term = int(np.searchsorted(np.cumsum(self.sizes), np.flatnonzero(columns)[0], 'right'))
        return f'observation term {self._terms[term][0].term!r} gave a number that is not finite'

    def reset(self, selection: EnvSelection) -> None:
        """Forget older values in these envs, where episodes start."""
        for index in self.delayed:
            cfg, function = self._terms[index]
            value = columns(function(self._state), self._state, cfg.term)
            history = self.histories[index]
            if history is None:
                _check_delay(cfg, value.shape)
                copy = self._state.xp.asarray
                history = self.histories[index] = [copy(value, copy=True) for _ in range(cfg.delay + 1)]
            for past in history:
                selection.put(past, selection.take(value))

    def advance(self, selection: EnvSelection) -> None:
        """Remember the values after a step of these envs, to be shown later."""
        for index in self.delayed:
            cfg, function = self._terms[index]
            history = self.histories[index]
            assert history is not None
            for older, newer in pairwise(history):
                selection.put(older, selection.take(newer))
            selection.put(history[-1], selection.take(columns(function(self._state), self._state, cfg.term)))

    def _values(self, delayed: bool = True) -> list[Array]:
        """Return the values of all terms `(n, k)`, those of delayed terms as they were then or as they are now."""
        values: list[Array] = []
        for (cfg, function), history in zip(self._terms, self.histories, strict=True):
            value = history[0] if delayed and history is not None else function(self._state)
            last = self.last
            right = value.__class__ is last.__class__ and value.ndim == 2 and value.dtype == last.dtype
            values.append(value if right and len(value) == len(last) else columns(value, self._state, cfg.term))
        return values

    def _joined(self, values: list[Array]) -> Array:
        """Return the values of all terms with noise, clipped and scaled, side by side."""
        xp = self._state.xp
        if self._scaled is None:
            self.sizes = [value.shape[-1] for value in values]
            self._scaled = [
                (index, cfg.clip, self._factor(cfg, size))
                for index, ((cfg, _), size) in enumerate(zip(self._terms, self.sizes, strict=True))
                if cfg.clip is not None or cfg.scale != 1.0
            ]
        if self._noisy:
            self._add_noise(values)
        for index, clip, factor in self._scaled:
            value = values[index] if clip is None else xp.clip(values[index], -clip, clip)
            values[index] = value if factor is None else value * factor
        return xp.concat(values, axis=-1)

    def _add_noise(self, values: list[Array]) -> None:
        """Add noise to values, drawn at once, since every draw of few numbers takes as long."""
        sizes = [self.sizes[index] for index in self._noisy]
        unit = self._state.rng.uniform(-1.0, 1.0, (len(values[0]), sum(sizes)))
        for index, size, end in zip(self._noisy, sizes, accumulate(sizes), strict=True):
            noise = self._terms[index][0].noise * unit[:, end - size : end]
            values[index] = values[index] + self._state.arrays.asarray(noise, 'float32')

    def _factor(self, cfg: ObservationTermCfg, size: int) -> Any:
        """Return what a term of so many elements is multiplied by; None for 1."""
        if not isinstance(cfg.scale, list):
            return None if cfg.scale == 1.0 else float(cfg.scale)
        if len(cfg.scale) != size:
            raise ValueError(f'observation term {cfg.term!r}: scale has {len(cfg.scale)} numbers for {size} elements')
        return self._state.arrays.asarray(cfg.scale, 'float32')


def _check_delay(cfg: ObservationTermCfg, shape: Sequence[int]) -> None:
    """Raise ValueError if the values of a term that are remembered do not fit into the memory of the machine."""
    needed, memory = 4 * (cfg.delay + 1) * math.prod(shape), machine_memory()
    if memory is not None and needed > memory:
        raise ValueError(
            f'observation term {cfg.term!r}: delay={cfg.delay} of {shape[0]} envs with {shape[1]} values each takes '
            f'{needed} bytes; this machine has {memory}'
        )


def columns(value: Any, state: RobotState, name: str) -> Array:
    """Return the value of an observation term as `(n, k)` float32. ValueError for another shape, `(n,)` aside."""
    value = state.arrays.asarray(value, 'float32')
    if value.ndim == 1:
        value = value[:, None]
    if value.ndim != 2 or len(value) != state.env_num:
        raise ValueError(f'observation term {name!r} must return ({state.env_num}, k), got shape {tuple(value.shape)}')
    return value
