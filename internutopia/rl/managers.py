"""Managers of terms: each holds the terms of one kind, evaluates them and keeps what they need to remember."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.learning import (
    CommandTermCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TermCfg,
    TerminationTermCfg,
)
from internutopia.engines.env_selection import EnvSelection
from internutopia.rl.faults import DeviceFaults
from internutopia.rl.state import RobotState
from internutopia.rl.terms import look_up_term
from internutopia.util import did_you_mean
from internutopia.util.arrays import masked_assign, to_host
from internutopia.util.memory import machine_memory

Array = NDArray[np.float32]
Bools = NDArray[np.bool_]
LookUp = Callable[[Any, str, Mapping[str, Any]], Callable[..., Any]]  # of a term, by kind, name and parameters


class ObservationManager:
    """Observation terms side by side, `(n, dim)`.

    Attributes:
        last: what was computed last.
        before: what that was before.
        sizes: number of columns of each term, once something was computed.
        histories: of each term that is delayed, once an episode has started, `delay + 1` arrays `(n, k)`, oldest first.
    """

    def __init__(self, configs: Sequence[ObservationTermCfg], state: RobotState, look_up: LookUp = look_up_term):
        self._state = state
        self._terms = [(cfg, look_up('observation', cfg.term, cfg.params)) for cfg in configs]
        self._delayed = [index for index, cfg in enumerate(configs) if cfg.delay]
        self.histories: list[list[Array] | None] = [None] * len(configs)
        self.last: Array = state.arrays.zeros((state.env_num, 0))
        self.before: Array = self.last
        self.sizes: list[int] = []

    def compute(self) -> Array:
        """The observations now; they are kept as `last`, not to be written to."""
        if self._terms:
            values = [
                self._value(cfg, function) if history is None else history[0]
                for (cfg, function), history in zip(self._terms, self.histories, strict=True)
            ]
            self.before, self.last = self.last, self._disturbed(values)
        return self.last

    def first(self, selection: EnvSelection) -> Array:
        """The first observations of episodes in these envs, `(m, dim)`; the other envs are not looked at."""
        if not self._terms:
            return selection.take(self.last)
        values = [selection.take(self._value(cfg, function)) for cfg, function in self._terms]
        with self._state.rng.for_envs(selection.ids):
            first = self._disturbed(values)
        selection.put(self.last, first)
        return first

    def fault(self, env_id: int) -> str:
        """Names the term whose numbers in `last` are not all finite in an env."""
        return self.fault_in(to_host(~self._state.xp.isfinite(self.last[env_id])))

    def fault_in(self, columns: NDArray[np.bool_]) -> str:
        """The same, of the columns `(dim,)` that have such numbers."""
        term = int(np.searchsorted(np.cumsum(self.sizes), np.flatnonzero(columns)[0], 'right'))
        return f'observation term {self._terms[term][0].term!r} gave a number that is not finite'

    def reset(self, selection: EnvSelection) -> None:
        """Episodes start: there are no older values in these envs."""
        for index in self._delayed:
            cfg, function = self._terms[index]
            value = self._value(cfg, function)
            history = self.histories[index]
            if history is None:
                _check_delay(cfg, value.shape)
                copy = self._state.xp.asarray
                history = self.histories[index] = [copy(value, copy=True) for _ in range(cfg.delay + 1)]
            for past in history:
                selection.put(past, selection.take(value))

    def pass_time(self, selection: EnvSelection) -> None:
        """A step went by in these envs: remember the values that will be shown later."""
        for index in self._delayed:
            history = self.histories[index]
            assert history is not None
            for older, newer in pairwise(history):
                selection.put(older, selection.take(newer))
            selection.put(history[-1], selection.take(self._value(*self._terms[index])))

    def _value(self, cfg: ObservationTermCfg, function: Callable[..., Any]) -> Array:
        value, last = function(self._state), self.last
        right = value.__class__ is last.__class__ and value.ndim == 2 and value.dtype == last.dtype
        return value if right and len(value) == len(last) else columns(value, self._state, cfg.term)

    def _disturbed(self, values: Sequence[Array]) -> Array:
        """The values of all terms with noise, clipped and scaled, side by side."""
        self.sizes = self.sizes or [value.shape[-1] for value in values]
        shown: list[Array] = []
        for (cfg, _), value, noise in zip(self._terms, values, self._noises(values), strict=True):
            if noise is not None:
                value = value + noise
            shown.append(value if cfg.clip is None and cfg.scale == 1.0 else self._scaled(cfg, value))
        return self._state.xp.concat(shown, axis=-1)

    def _noises(self, values: Sequence[Array]) -> list[Array | None]:
        """What is added to the values of each term: drawn at once, since every draw of few numbers takes as long."""
        sizes = [value.shape[-1] if cfg.noise else 0 for (cfg, _), value in zip(self._terms, values, strict=True)]
        if not any(sizes):
            return [None] * len(values)
        unit = self._state.rng.uniform(-1.0, 1.0, (len(values[0]), sum(sizes)))
        ends = list(accumulate(sizes))
        return [
            self._state.arrays.asarray(cfg.noise * unit[:, end - size : end], 'float32') if size else None
            for (cfg, _), size, end in zip(self._terms, sizes, ends, strict=True)
        ]

    def _scaled(self, cfg: ObservationTermCfg, value: Array) -> Array:
        if cfg.clip is not None:
            value = self._state.xp.clip(value, -cfg.clip, cfg.clip)
        if isinstance(cfg.scale, list):
            return value * self._factors(cfg.term, cfg.scale, value.shape[-1])
        return value * float(cfg.scale) if cfg.scale != 1.0 else value

    def _factors(self, name: str, scale: list[float], size: int) -> Array:
        if len(scale) != size:
            raise ValueError(f'observation term {name!r}: scale has {len(scale)} numbers for {size} elements')
        return self._state.constant(tuple(scale))


def _check_delay(cfg: ObservationTermCfg, shape: Sequence[int]) -> None:
    """ValueError if the values of a term that are remembered do not fit into the memory of the machine."""
    needed, memory = 4 * (cfg.delay + 1) * math.prod(shape), machine_memory()
    if memory is not None and needed > memory:
        raise ValueError(
            f'observation term {cfg.term!r}: delay={cfg.delay} of {shape[0]} envs with {shape[1]} values each takes '
            f'{needed} bytes; this machine has {memory}'
        )


class RewardManager:
    """Reward terms, weighed and added up; `state.reward_sums` are those of the terms `watched` over the episode.

    Attributes:
        values: of each term in the last step, unweighted `(n,)`.
    """

    def __init__(
        self,
        configs: Sequence[RewardTermCfg],
        state: RobotState,
        watched: Collection[str] = (),
        look_up: LookUp = look_up_term,
    ):
        names = [cfg.term for cfg in configs]
        for name in watched:
            if name not in names:
                raise ValueError(f'a curriculum looks at reward {name!r}: there is none; {did_you_mean(name, names)}')
        self._state = state
        self._watched = {names.index(name): name for name in watched}  # of several of a name, the first
        state.reward_sums = {name: state.arrays.zeros(state.env_num) for name in watched}
        self._terms = [
            (cfg, look_up('reward', cfg.term, cfg.params), float(np.float32(cfg.weight * state.step_dt)))
            for cfg in configs
        ]
        self.values: list[Array] = []

    def compute(self) -> Array:
        """Rewards `(n,)` of this step."""
        total = self._state.arrays.zeros(self._state.env_num)
        kind, shape = total.__class__, total.shape
        self.values.clear()
        for index, (cfg, function, weight) in enumerate(self._terms):
            value = function(self._state)
            if value.__class__ is not kind or value.shape != shape:  # a call for each term in each step would be slow
                value = per_env(value, self._state, 'reward', cfg.term)
            self.values.append(value)
            total += weight * value
            if index in self._watched:
                self._state.reward_sums[self._watched[index]] += value * self._state.step_dt
        return total

    def fault(self, env_id: int) -> str:
        """Names the term whose value is not finite in an env."""
        return self._fault_in(np.array([not np.isfinite(value[env_id]) for value in self.values]))

    def device_faults(self, spoilt: Any) -> list[DeviceFaults]:
        """Return the faults behind the rewards of these envs `(n,)` on a device."""
        if not self.values:
            return []
        xp = self._state.xp
        return [DeviceFaults(spoilt, (spoilt & ~xp.isfinite(xp.stack(self.values))).any(axis=-1), self._fault_in)]

    def _fault_in(self, terms: NDArray[np.bool_]) -> str:
        """Names the first of these terms, bool `(terms,)`; if it is none of them, their sum is too large."""
        names = [cfg.term for cfg, _, _ in self._terms]
        if terms.any():
            return f'reward term {names[int(terms.argmax())]!r} gave a number that is not finite'
        return f'reward terms {", ".join(map(repr, names))} add up to a number that is not finite'

    def contributions(self, env_id: int) -> list[tuple[str, float]]:
        """What each term added to the reward of an env in the last step; nothing before the first one."""
        return [
            (cfg.term, weight * float(value[env_id]))
            for (cfg, _, weight), value in zip(self._terms, self.values, strict=bool(self.values))
        ]

    def reset(self, selection: EnvSelection) -> None:
        """Episodes start."""
        for total in self._state.reward_sums.values():
            selection.put(total, 0.0)


class TerminationManager:
    """Reasons for an end."""

    def __init__(self, configs: Sequence[TerminationTermCfg], state: RobotState, look_up: LookUp = look_up_term):
        self._state = state
        self._terms = [(cfg, look_up('termination', cfg.term, cfg.params)) for cfg in configs]

    def compute(self) -> tuple[Bools, Bools]:
        """Return masks of the envs that terminate and of those that are truncated, `(n,)` each."""
        terminated, truncated = self._state.arrays.zeros((2, self._state.env_num), 'bool')
        kind, shape, dtype = terminated.__class__, terminated.shape, terminated.dtype
        for cfg, function in self._terms:
            ends, value = truncated if cfg.truncates else terminated, function(self._state)
            if value.__class__ is not kind or value.shape != shape or value.dtype != dtype:
                value = per_env(value, self._state, 'termination', cfg.term)
            ends |= value
        return terminated, truncated


class MetricManager:
    """Figures of an episode that its result and `info` have when it ends.

    Those of an env that failed are what they were before, and 0 where it failed in its first step.
    """

    def __init__(self, configs: Mapping[str, TermCfg], state: RobotState):
        self._state = state
        self._terms = {name: (cfg, look_up_term('metric', cfg.term, cfg.params)) for name, cfg in configs.items()}
        self._last: dict[str, Array] = {}

    def compute(self, failed: Bools) -> dict[str, Array]:
        """Their values `(n,)` after this step, by name; `failed` envs `(n,)` have nothing to measure."""
        xp, before = self._state.xp, self._last
        now = {
            name: xp.asarray(per_env(function(self._state), self._state, 'metric', cfg.term), copy=True)
            for name, (cfg, function) in self._terms.items()
        }
        for name, values in now.items():
            masked_assign(values, failed, before.get(name, False))
        self._last = now
        return dict(now)

    def reset(self, selection: EnvSelection) -> None:
        """Episodes start."""
        self._last = {name: self._state.xp.asarray(values, copy=True) for name, values in self._last.items()}
        for values in self._last.values():
            selection.put(values, 0)


class CommandManager:
    """Commands, in `state.commands`."""

    def __init__(self, configs: Mapping[str, CommandTermCfg], state: RobotState):
        self._state = state
        self._terms = {name: (cfg, look_up_term('command', cfg.term, cfg.params)) for name, cfg in configs.items()}
        self.timers = Timers.of(state, [cfg.resample_time for cfg in configs.values()])
        self._held: dict[tuple[str, int], Any] = {}  # by name and env id

    def hold(self, name: str, env_id: int, values: Any) -> None:
        """Keep a command of an env at these values `(k,)`, whatever is sampled; None lets go of it."""
        if values is None:
            self._held.pop((name, env_id), None)
        else:
            self._held[name, env_id] = self._state.commands[name][env_id] = values

    def sample(self, selection: EnvSelection) -> None:
        """Sample all commands of these envs."""
        for index, name in enumerate(self._terms):
            self._sample(index, name, selection)

    def resample(self, expired: Sequence[Bools | None]) -> None:
        """Sample each command anew where its timer has expired."""
        for index, (name, mask) in enumerate(zip(self._terms, expired, strict=True)):
            if mask is not None and (selection := self._state.select(mask)).any:
                self._sample(index, name, selection)

    def _sample(self, index: int, name: str, selection: EnvSelection) -> None:
        cfg, function = self._terms[name]
        arrays, n = self._state.arrays, self._state.env_num
        values = arrays.asarray(function(self._state, selection.ids), 'float32')
        if values.ndim != 2 or len(values) != len(selection.ids):
            raise ValueError(
                f'command term {cfg.term!r} must return ({len(selection.ids)}, k) for {len(selection.ids)} envs, '
                f'got {tuple(values.shape)}'
            )
        if name not in self._state.commands:
            self._state.commands[name] = arrays.zeros((n, values.shape[1]))
        selection.put(self._state.commands[name], values)
        for (held, env_id), value in self._held.items():
            if held == name:
                self._state.commands[name][env_id] = value
        self.timers.set(index, selection, cfg.resample_time)


class RandomizationManager:
    """What is made different in every env, at the start of an episode or now and then."""

    def __init__(self, configs: Sequence[RandomizationTermCfg], state: RobotState):
        self._state = state
        self._terms = [(cfg, look_up_term('randomization', cfg.term, cfg.params)) for cfg in configs]
        self.timers = Timers.of(state, [cfg.interval for cfg in configs])

    def reset(self, selection: EnvSelection) -> None:
        """Episodes start."""
        with selection.masked_writes(), self._state.rng.for_envs(selection.ids):
            for index, (cfg, function) in enumerate(self._terms):
                if cfg.interval is None:
                    function(self._state, selection.ids)
                else:
                    self.timers.set(index, selection, self._state.rng.uniform(*cfg.interval, len(selection.ids)))

    def repeat(self, expired: Sequence[Bools | None]) -> None:
        """Change envs again where the timer of a term has expired."""
        for index, ((cfg, function), mask) in enumerate(zip(self._terms, expired, strict=True)):
            if mask is not None and cfg.interval is not None and (selection := self._state.select(mask)).any:
                with selection.masked_writes(), self._state.rng.for_envs(selection.ids):
                    function(self._state, selection.ids)
                    self.timers.set(index, selection, self._state.rng.uniform(*cfg.interval, len(selection.ids)))
                self._state.changed()


class CurriculumManager:
    """What changes with the progress of learning."""

    def __init__(self, configs: Sequence[TermCfg], state: RobotState):
        self._state = state
        self._terms: list[Callable[..., Any]] = [look_up_term('curriculum', cfg.term, cfg.params) for cfg in configs]

    def update(self, selection: EnvSelection) -> None:
        """Episodes of these envs are over. The levels of others stay as they are, whatever a term does."""
        for function in self._terms:
            before = self._state.xp.asarray(self._state.levels, copy=True)
            function(self._state, selection.ids)
            selection.put(before, selection.take(self._state.levels))
            self._state.levels = before


class Timers:
    """How long envs have until something happens to them again, one time for each of several things.

    Args:
        left: for each thing, `(n,)` [s]; None if it never happens again.
        step_dt: length of an env step [s].
    """

    def __init__(self, left: Sequence[NDArray[np.float64] | None], step_dt: float):
        self.left = left
        self._step_dt = step_dt

    @classmethod
    def of(cls, state: RobotState, things: Sequence[Any]) -> Timers:
        """Timers that are not set yet, but for the things that are None."""
        n, arrays = state.env_num, state.arrays
        return cls([None if thing is None else arrays.zeros(n, 'float64') + np.inf for thing in things], state.step_dt)

    def set(self, index: int, selection: EnvSelection, time: Any) -> None:
        """It happens in these envs after a time [s], one number or `(m,)`."""
        left = self.left[index]
        if left is not None:
            selection.put(left, time)

    def advance(self, going: Bools) -> list[Bools | None]:
        """A step goes by in some envs, bool `(n,)`: where each thing happens now, at the nearest step."""
        return [None if left is None else self._advance(left, going) for left in self.left]

    def _advance(self, left: NDArray[np.float64], going: Bools) -> Bools:
        masked_assign(left, going, left - self._step_dt)
        return going & (left < self._step_dt / 2.0)


def per_env(value: Any, state: RobotState, kind: str, name: str) -> Any:
    """Check the value of a term for each env. ValueError unless it is `(n,)`, and bool for a termination."""
    value = state.arrays.asarray(value)
    if value.shape != (state.env_num,):
        raise ValueError(f'{kind} term {name!r} must return ({state.env_num},), got shape {tuple(value.shape)}')
    if kind == 'termination' and value.dtype != state.xp.bool:
        raise ValueError(f'termination term {name!r} must return bool ({state.env_num},), got dtype {value.dtype}')
    return value


def columns(value: Any, state: RobotState, name: str) -> Array:
    """Return the value of an observation term as `(n, k)` float32. ValueError for another shape, `(n,)` aside."""
    value = state.arrays.asarray(value, 'float32')
    if value.ndim == 1:
        value = value[:, None]
    if value.ndim != 2 or len(value) != state.env_num:
        raise ValueError(f'observation term {name!r} must return ({state.env_num}, k), got shape {tuple(value.shape)}')
    return value
