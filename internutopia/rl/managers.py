"""Terms at work: each manager holds the terms of one kind, evaluates them and keeps what they need to remember."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.config.learning import (
    CommandTermCfg,
    ObservationTermCfg,
    RandomizationTermCfg,
    RewardTermCfg,
    TermCfg,
    TerminationTermCfg,
)
from internutopia.rl.state import RobotState
from internutopia.rl.terms import look_up_term

Array = NDArray[np.float32]
EnvIds = NDArray[np.intp]


class Observations:
    """Observation terms side by side, `(n, dim)`; `last` is what was computed last."""

    def __init__(self, configs: Sequence[ObservationTermCfg], state: RobotState):
        self._state = state
        self._terms = [(cfg, look_up_term('observation', cfg.term, cfg.params)) for cfg in configs]
        self._delayed = [index for index, cfg in enumerate(configs) if cfg.delay]
        self._histories: list[Array | None] = [None] * len(configs)  # (delay + 1, n, k), oldest first
        self.last: Array = np.zeros((state.env_num, 0), np.float32)

    def compute(self) -> Array:
        """The observations now."""
        if self._terms:
            parts = [
                self._disturbed(cfg, self._value(cfg, function) if history is None else history[0])
                for (cfg, function), history in zip(self._terms, self._histories, strict=True)
            ]
            self.last = np.concatenate(parts, axis=-1)
        return self.last.copy()

    def first(self, env_ids: EnvIds) -> Array:
        """The first observations of episodes in these envs, `(m, dim)`; the other envs are not looked at."""
        parts = [self._disturbed(cfg, self._value(cfg, function)[env_ids]) for cfg, function in self._terms]
        rows = np.concatenate(parts, axis=-1) if parts else np.zeros((len(env_ids), 0), np.float32)
        self.last[env_ids] = rows
        return rows

    def start(self, env_ids: EnvIds) -> None:
        """Episodes start: there are no older values in these envs."""
        for index in self._delayed:
            cfg, function = self._terms[index]
            value = self._value(cfg, function)
            history = self._histories[index]
            if history is None:
                history = self._histories[index] = np.repeat(value[None], cfg.delay + 1, axis=0)
            history[:, env_ids] = value[env_ids]

    def pass_time(self, env_ids: EnvIds) -> None:
        """A step went by in these envs: remember the values that will be shown later."""
        for index in self._delayed:
            history = self._histories[index]
            assert history is not None
            history[:-1, env_ids] = history[1:, env_ids]
            history[-1, env_ids] = self._value(*self._terms[index])[env_ids]

    def _value(self, cfg: ObservationTermCfg, function: Callable[..., Any]) -> Array:
        value = np.asarray(function(self._state), np.float32)
        if value.ndim == 1:
            value = value[:, None]
        if value.ndim != 2 or len(value) != self._state.env_num:
            raise ValueError(
                f'observation term {cfg.term!r} must return ({self._state.env_num}, k), got shape {value.shape}'
            )
        return value

    def _disturbed(self, cfg: ObservationTermCfg, value: Array) -> Array:
        if cfg.noise:
            value = value + self._state.rng.uniform(-cfg.noise, cfg.noise, value.shape).astype(np.float32)
        if cfg.clip is not None:
            value = np.clip(value, -cfg.clip, cfg.clip)
        return value * np.float32(cfg.scale) if cfg.scale != 1.0 else value


class Rewards:
    """Reward terms, weighed and added up."""

    def __init__(self, configs: Sequence[RewardTermCfg], state: RobotState):
        self._state = state
        self._terms = [
            (cfg, look_up_term('reward', cfg.term, cfg.params), np.float32(cfg.weight * state.step_dt))
            for cfg in configs
        ]

    def compute(self) -> Array:
        """Rewards `(n,)` of this step."""
        total = np.zeros(self._state.env_num, np.float32)
        for cfg, function, weight in self._terms:
            total += weight * _row(function(self._state), self._state, 'reward', cfg)
        return total


class Terminations:
    """Reasons for an end."""

    def __init__(self, configs: Sequence[TerminationTermCfg], state: RobotState):
        self._state = state
        self._terms = [(cfg, look_up_term('termination', cfg.term, cfg.params)) for cfg in configs]

    def compute(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which envs terminate and which are truncated, `(n,)` each."""
        terminated = np.zeros(self._state.env_num, bool)
        truncated = np.zeros(self._state.env_num, bool)
        for cfg, function in self._terms:
            ends = truncated if cfg.truncates else terminated
            ends |= _row(function(self._state), self._state, 'termination', cfg).astype(bool)
        return terminated, truncated


class Commands:
    """Commands, in `state.commands`."""

    def __init__(self, configs: Mapping[str, CommandTermCfg], state: RobotState):
        self._state = state
        self._terms = {name: (cfg, look_up_term('command', cfg.term, cfg.params)) for name, cfg in configs.items()}
        self._left = {name: np.full(state.env_num, np.inf) for name in configs}  # time until the next draw [s]

    def draw(self, env_ids: EnvIds) -> None:
        """Draw all commands of these envs."""
        for name in self._terms:
            self._draw(name, env_ids)

    def pass_time(self, running: NDArray[np.bool_]) -> None:
        """A step went by."""
        for name, left in self._left.items():
            left[running] -= self._state.step_dt
            due = np.flatnonzero(running & (left < self._state.step_dt / 2.0))  # at the nearest step
            if len(due):
                self._draw(name, due)

    def _draw(self, name: str, env_ids: EnvIds) -> None:
        cfg, function = self._terms[name]
        values = np.asarray(function(self._state, env_ids), np.float32)
        if values.ndim != 2 or len(values) != len(env_ids):
            raise ValueError(
                f'command term {cfg.term!r} must return ({len(env_ids)}, k) for {len(env_ids)} envs, got {values.shape}'
            )
        commands = self._state.commands.setdefault(name, np.zeros((self._state.env_num, values.shape[1]), np.float32))
        commands[env_ids] = values
        self._left[name][env_ids] = np.inf if cfg.resample_time is None else cfg.resample_time


class Randomizations:
    """What is made different in every env, at the start of an episode or now and then."""

    def __init__(self, configs: Sequence[RandomizationTermCfg], state: RobotState):
        self._state = state
        self._terms = [(cfg, look_up_term('randomization', cfg.term, cfg.params)) for cfg in configs]
        self._left = [np.full(state.env_num, np.inf) for _ in configs]  # time until the next application [s]

    def start(self, env_ids: EnvIds) -> None:
        """Episodes start."""
        for (cfg, function), left in zip(self._terms, self._left, strict=True):
            if cfg.interval is None:
                function(self._state, env_ids)
            else:
                left[env_ids] = self._state.rng.uniform(*cfg.interval, len(env_ids))

    def pass_time(self, running: EnvIds) -> None:
        """A step went by in these envs."""
        for (cfg, function), left in zip(self._terms, self._left, strict=True):
            if cfg.interval is None:
                continue
            left[running] -= self._state.step_dt
            due = running[left[running] < self._state.step_dt / 2.0]  # at the nearest step
            if len(due):
                function(self._state, due)
                left[due] = self._state.rng.uniform(*cfg.interval, len(due))
                self._state.changed()


class Curriculum:
    """What changes with the progress of learning."""

    def __init__(self, configs: Sequence[TermCfg], state: RobotState):
        self._state = state
        self._terms: list[Callable[..., Any]] = [look_up_term('curriculum', cfg.term, cfg.params) for cfg in configs]

    def update(self, env_ids: EnvIds) -> None:
        """Episodes of these envs are over."""
        for function in self._terms:
            function(self._state, env_ids)


def _row(value: Any, state: RobotState, kind: str, cfg: TermCfg) -> NDArray[Any]:
    value = np.asarray(value)
    if value.shape != (state.env_num,):
        raise ValueError(f'{kind} term {cfg.term!r} must return ({state.env_num},), got shape {value.shape}')
    return value
