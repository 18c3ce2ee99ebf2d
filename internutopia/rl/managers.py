"""Managers of terms, one per kind, and the evaluation of a step of all envs with them.

A manager holds the terms of its kind, evaluates them and keeps what they need to remember; that of observations is in
`observer.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from internutopia.config.learning import (
    CommandTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TermCfg,
    TerminationTermCfg,
)
from internutopia.engines.env_selection import EnvSelection
from internutopia.rl.faults import DeviceFaults
from internutopia.rl.state import RobotState
from internutopia.rl.terms import look_up_term
from internutopia.rl.terms.registry import LookUp
from internutopia.util import did_you_mean
from internutopia.util.arrays import masked_assign

Array = NDArray[np.float32]
Bools = NDArray[np.bool_]


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
                raise ValueError(f'a curriculum reads reward {name!r}: there is none; {did_you_mean(name, names)}')
        self._state = state
        self._watched = {names.index(name): name for name in watched}  # of several of a name, the first
        state.reward_sums = {name: state.arrays.zeros(state.env_num) for name in watched}
        self._terms = [
            (cfg, look_up('reward', cfg.term, cfg.params), float(np.float32(cfg.weight * state.step_dt)))
            for cfg in configs
        ]
        self.values: list[Array] = []
        self._total: Array = state.arrays.zeros(state.env_num)

    def compute(self) -> Array:
        """Compute the rewards `(n,)` of this step; they hold until the next call."""
        total = self._total
        total[...] = 0.0
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
        """Return a text that names the term whose value is not finite in an env."""
        return self._fault_in(np.array([not np.isfinite(value[env_id]) for value in self.values]))

    def device_faults(self, envs: Any) -> list[DeviceFaults]:
        """Return the faults behind the rewards of these envs `(n,)` on a device."""
        if not self.values:
            return []
        xp = self._state.xp
        return [DeviceFaults(envs, (envs & ~xp.isfinite(xp.stack(self.values))).any(axis=-1), self._fault_in)]

    def _fault_in(self, terms: NDArray[np.bool_]) -> str:
        """Return a text that names the first of these terms, bool `(terms,)`; of none, that their sum is too large."""
        names = [cfg.term for cfg, _, _ in self._terms]
        if terms.any():
            return f'reward term {names[int(terms.argmax())]!r} gave a number that is not finite'
        return f'reward terms {", ".join(map(repr, names))} add up to a number that is not finite'

    def contributions(self, env_id: int) -> list[tuple[str, float]]:
        """Return the share of each term in the reward of an env in the last step; nothing before the first one."""
        return [
            (cfg.term, weight * float(value[env_id]))
            for (cfg, _, weight), value in zip(self._terms, self.values, strict=bool(self.values))
        ]

    def reset(self, selection: EnvSelection) -> None:
        """Clear the sums in these envs, where episodes start."""
        for total in self._state.reward_sums.values():
            selection.put(total, 0.0)


class TerminationManager:
    """Reasons for an end."""

    def __init__(self, configs: Sequence[TerminationTermCfg], state: RobotState, look_up: LookUp = look_up_term):
        self._state = state
        self._terms = [(cfg, look_up('termination', cfg.term, cfg.params)) for cfg in configs]
        self._ends: Bools = state.arrays.zeros((2, state.env_num), 'bool')

    def compute(self) -> tuple[Bools, Bools]:
        """Return masks of the envs that terminate and of those that are truncated, `(n,)` each, until the next call."""
        self._ends[...] = False
        terminated, truncated = self._ends
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
        """Compute the values `(n,)` after this step, by name; `failed` envs `(n,)` keep those before."""
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
        """Forget the values in these envs, where episodes start."""
        self._last = {name: self._state.xp.asarray(values, copy=True) for name, values in self._last.items()}
        for values in self._last.values():
            selection.put(values, 0)


Event = tuple[NDArray[np.float64], Callable[[EnvSelection], None]]
"""Something that happens to an env during its episode: time until then `(n,)` [s], and what happens to some envs."""


class CommandManager:
    """Commands, in `state.commands`.

    Attributes:
        events: new commands during an episode.
    """

    def __init__(self, configs: Mapping[str, CommandTermCfg], state: RobotState):
        self._state = state
        self._terms = {name: (cfg, look_up_term('command', cfg.term, cfg.params)) for name, cfg in configs.items()}
        self._timers = {name: unset_timer(state) for name, cfg in configs.items() if cfg.resample_time is not None}
        self.events: list[Event] = [
            (timer, functools.partial(self._sample, name)) for name, timer in self._timers.items()
        ]
        self._held: dict[tuple[str, int], Any] = {}  # by name and env id

    def hold(self, name: str, env_id: int, values: Any) -> None:
        """Keep a command of an env at these values `(k,)`, whatever is sampled; None lets go of it."""
        if values is None:
            self._held.pop((name, env_id), None)
        else:
            self._held[name, env_id] = self._state.commands[name][env_id] = values

    def sample(self, selection: EnvSelection) -> None:
        """Sample all commands of these envs."""
        for name in self._terms:
            self._sample(name, selection)

    def _sample(self, name: str, selection: EnvSelection) -> None:
        cfg, function = self._terms[name]
        arrays, n = self._state.arrays, self._state.env_num
        wait = cfg.resample_time
        with self._state.rng.for_envs(selection.ids):
            values = arrays.asarray(function(self._state, selection.ids), 'float32')
            if isinstance(wait, tuple):
                wait = self._state.rng.uniform(*wait, len(selection.ids))
        if cfg.resample_grid is not None:
            period, offset = cfg.resample_grid
            now = selection.take(self._state.steps) * self._state.step_dt - offset
            wait = self._state.xp.ceil((now + wait) / period) * period - now
        if values.ndim != 2 or len(values) != len(selection.ids):
            raise ValueError(
                f'command term {cfg.term!r} must return ({len(selection.ids)}, k) for {len(selection.ids)} envs, '
                f'got {tuple(values.shape)}'
            )
        commands = self._state.commands  # only now: the term may compute with those before
        if name not in commands:
            commands[name] = arrays.zeros((n, values.shape[1]))
        selection.put(commands[name], values)
        for (held, env_id), value in self._held.items():
            if held == name:
                commands[name][env_id] = value
        if name in self._timers:
            selection.put(self._timers[name], wait)


class RandomizationManager:
    """What is made different in every env, at the start of an episode or now and then.

    Attributes:
        events: what is made different during an episode.
    """

    def __init__(self, configs: Sequence[RandomizationTermCfg], state: RobotState):
        self._state = state
        terms = [(cfg.interval, look_up_term('randomization', cfg.term, cfg.params)) for cfg in configs]
        self._terms = [(interval, function, unset_timer(state)) for interval, function in terms]
        self.events: list[Event] = [
            (timer, functools.partial(self._repeat, interval, function, timer))
            for interval, function, timer in self._terms
            if interval is not None
        ]

    def reset(self, selection: EnvSelection) -> None:
        """Change envs in which episodes start."""
        state = self._state
        with selection.masked_writes(), state.rng.for_envs(selection.ids):
            for interval, function, timer in self._terms:
                if interval is None:
                    function(state, selection.ids)
                    state.changed()
                else:
                    selection.put(timer, state.rng.uniform(*interval, len(selection.ids)))

    def _repeat(
        self, interval: tuple[float, float], function: Callable[..., Any], timer: Any, selection: EnvSelection
    ) -> None:
        state = self._state
        with selection.masked_writes(), state.rng.for_envs(selection.ids):
            function(state, selection.ids)
            selection.put(timer, state.rng.uniform(*interval, len(selection.ids)))
        state.changed()


class CurriculumManager:
    """What changes with the progress of learning."""

    def __init__(self, configs: Sequence[TermCfg], state: RobotState):
        self._state = state
        self._terms: list[Callable[..., Any]] = [look_up_term('curriculum', cfg.term, cfg.params) for cfg in configs]

    def update(self, selection: EnvSelection) -> None:
        """Call the terms for envs whose episodes are over; the levels of others do not change, whatever a term does."""
        for function in self._terms:
            before = self._state.xp.asarray(self._state.levels, copy=True)
            with self._state.rng.for_envs(selection.ids):
                function(self._state, selection.ids)
            selection.put(before, selection.take(self._state.levels))
            self._state.levels = before


def unset_timer(state: RobotState) -> NDArray[np.float64]:
    """Return a timer `(n,)` [s] that never expires."""
    return state.arrays.zeros(state.env_num, 'float64') + np.inf


def per_env(value: Any, state: RobotState, kind: str, name: str) -> Any:
    """Check the value of a term for each env. ValueError unless it is `(n,)`, and bool for a termination."""
    value = state.arrays.asarray(value)
    if value.shape != (state.env_num,):
        raise ValueError(f'{kind} term {name!r} must return ({state.env_num},), got shape {tuple(value.shape)}')
    if kind == 'termination' and value.dtype != state.xp.bool:
        raise ValueError(f'termination term {name!r} must return bool ({state.env_num},), got dtype {value.dtype}')
    return value


@dataclass
class EpisodeArrays:
    """Of the episode in each env, `(n,)`.

    Attributes:
        running: whether it continues.
        limits: steps after which it is truncated.
        returns: sum of its rewards.
        failed: whether it ends with this step because something went wrong.
        done: whether its task ends it with this step.
        timers: those of events.
    """

    running: Bools
    limits: NDArray[np.intp]
    returns: NDArray[np.float64]
    failed: Bools
    done: Bools
    timers: Sequence[NDArray[np.float64]]


class StepEvaluation(NamedTuple):
    """Rewards and ends of a step, `(n,)` each; None for a mask that is known to be empty.

    Attributes:
        rewards: zero in envs that do not run, or failed.
        terminated: which episodes end by an outcome; of an env that failed, that is what comes of its actions.
        truncated: which are cut.
        failed: which envs failed.
        invalid: which of them did because their reward is not a finite number.
        expired: for each timer of an event, where it happens now.
    """

    rewards: NDArray[np.float32]
    terminated: Bools
    truncated: Bools
    failed: Bools
    invalid: Bools | None
    expired: Sequence[Bools | None]


@dataclass
class StepOutcome:
    """One step of all envs, arrays `(n,)`; rows of envs that did not run are zero.

    Attributes:
        failed: which envs ended because something went wrong there: there is no going on, and nothing to expect.
        stuck: which robots stand still under a moving command; on a device it is not known.
        errors: what went wrong, by env id; on a device it is not known.
        ended: the envs whose episode is over.
        metrics: of the episodes so far, by name.
    """

    rewards: NDArray[np.float32]
    terminated: Bools
    truncated: Bools
    failed: Bools
    stuck: Bools
    errors: dict[int, str]
    ended: EnvSelection
    metrics: Mapping[str, NDArray[np.float32]]


def evaluate_step(
    state: RobotState, episodes: EpisodeArrays, terminations: TerminationManager, rewards: RewardManager
) -> StepEvaluation:
    """Compute rewards and ends of a step; adds up returns, and advances timers where episodes go on.

    Computed from arrays over envs and nothing else: for numpy, torch and, with traced arrays, machine code.
    """
    xp: Any = state.xp
    terminated, truncated = terminations.compute()
    values = xp.where(episodes.running & ~episodes.failed, rewards.compute(), 0.0)
    invalid = ~xp.isfinite(values)
    values = xp.where(invalid, 0.0, values)
    failed = episodes.failed | invalid
    healthy = episodes.running & ~failed
    terminated = (terminated | episodes.done) & healthy | failed
    truncated = (truncated | (state.steps >= episodes.limits)) & healthy
    episodes.returns += values
    going = episodes.running & ~(terminated | truncated)
    expired: list[Bools | None] = []
    for timer in episodes.timers:
        masked_assign(timer, going, timer - state.step_dt)
        expired.append(going & (timer < state.step_dt / 2.0))  # the nearest step
    return StepEvaluation(values, terminated, truncated, failed, invalid, expired)
