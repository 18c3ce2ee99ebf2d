"""Compiled terms: ends and rewards of a step as one kernel and observations as another, for each batch of envs.

The first step of a batch traces its terms and compiles what they do. A term that is not pure or cannot be traced is
called as ever, once a step, and what it returns is an input of the kernel.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.config.learning import LearningCfg, ObservationTermCfg
from internutopia.core.util.log import warn_once
from internutopia.core.world.batched.env_batch import EnvBatch
from internutopia.core.world.batched.world import BatchedWorld
from internutopia.rl.compiled.kernel import Inputs, Kernel
from internutopia.rl.compiled.state import TracedState
from internutopia.rl.managers import ObservationManager, RewardManager, TerminationManager, columns, per_env
from internutopia.rl.state import RobotState
from internutopia.rl.terms.registry import is_pure, look_up_term

Array = NDArray[np.float32]
Bools = NDArray[np.bool_]
Trace = Callable[[TracedState, Inputs, Any], list[tuple[Any, Callable[[], NDArray[Any]]]]]


class CompiledTerms:
    """What managers of terms compute, by kernels.

    Args:
        learning: names the terms.
        state: what they see.
        world: whose envs it is the state of.
        rewards: whose values and sums are kept.
        observers: managers whose last observations are kept, with their terms.
    """

    def __init__(
        self,
        learning: LearningCfg,
        state: RobotState,
        world: BatchedWorld,
        rewards: RewardManager,
        observers: Iterable[tuple[ObservationManager, Sequence[ObservationTermCfg]]],
    ):
        self._learning, self._state, self._rewards = learning, state, rewards
        n = state.env_num
        self._judged = np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, np.float32)
        self._judge = _Kernels(world, state, self._trace_judge)
        self._observe = {
            manager: _Kernels(world, state, functools.partial(self._trace_observer, manager, configs))
            for manager, configs in observers
        }

    def judge(self) -> tuple[Bools, Bools, Array]:
        """Which envs terminate, which are truncated and their rewards, `(n,)` each, until the next call."""
        self._judge.run()
        return self._judged

    def observe(self, manager: ObservationManager) -> Array:
        """What a manager observes `(n, dim)`, the caller's own."""
        self._observe[manager].run()
        return manager.last.copy()

    def _trace_judge(self, state: TracedState, inputs: Inputs, look_up: Any) -> Any:
        real, n = self._state, self._state.env_num
        terminations = TerminationManager(self._learning.terminations, state, look_up)
        rewards = RewardManager(self._learning.rewards, state, real.reward_sums, look_up)
        state.reward_sums = {
            name: inputs.add(lambda name=name: real.reward_sums[name], written=True) for name in real.reward_sums
        }
        judged = (*terminations.compute(), rewards.compute())
        own = self._rewards.values = self._rewards.values or [np.zeros(n, np.float32) for _ in rewards.values]
        values = [(value, lambda array=array: array) for value, array in zip(rewards.values, own, strict=True)]
        return [(value, lambda array=array: array) for value, array in zip(judged, self._judged, strict=True)] + values

    def _trace_observer(
        self,
        manager: ObservationManager,
        configs: Sequence[ObservationTermCfg],
        state: TracedState,
        inputs: Inputs,
        look_up: Any,
    ) -> Any:
        traced = ObservationManager(configs, state, look_up)
        for index, history in enumerate(manager.histories):
            if history is not None:
                traced.histories[index] = [inputs.add(lambda history=history: history[0])]
        observed = traced.compute()
        if manager.last.shape[1] != observed.shape[1]:
            manager.last = np.zeros((self._state.env_num, observed.shape[1]), np.float32)
        return [(observed, lambda: manager.last)]


class _Kernels:
    """A kernel for each batch of envs, traced when it is needed first.

    Args:
        world: has the batches.
        state: of its envs.
        trace: traces terms; returns outputs, each with what gives the array that it goes to.
    """

    def __init__(self, world: BatchedWorld, state: RobotState, trace: Trace):
        self._world, self._state, self._trace = world, state, trace
        self._plain = _PlainTerms(state)
        self._kernels: dict[int, Kernel] = {}  # by id of the batch
        self._calls: list[Callable[[], None]] = []
        self._placement = b''  # of the envs when the calls were found

    def run(self) -> None:
        """Compute for all envs that hold a scene."""
        self._plain.compute()
        if self._placement != self._world.placement:
            self._find_calls()
            self._placement = self._world.placement
        for call in self._calls:
            call()

    def _find_calls(self) -> None:
        kernels, self._kernels, self._calls = self._kernels, {}, []
        for batch in self._world.env_batches:
            if batch.id in kernels:
                self._kernels[batch.id] = kernels[batch.id]
            if batch.used:
                if batch.id not in self._kernels:
                    self._kernels[batch.id] = self._compiled(batch)
                slots = np.flatnonzero(batch.envs >= 0)
                self._calls.append(self._kernels[batch.id].of_rows(batch.envs[slots], slots))

    def _compiled(self, batch: EnvBatch) -> Kernel:
        inputs = Inputs()
        state = TracedState(self._state, batch, inputs)
        look_up = functools.partial(self._plain.look_up, inputs, itertools.count())
        return Kernel(inputs, self._trace(state, inputs, look_up))


class _PlainTerms:
    """Terms that are called as ever; their values are inputs."""

    def __init__(self, state: RobotState):
        self._state = state
        self._functions: dict[int, Callable[[], NDArray[Any]]] = {}
        self._values: dict[int, NDArray[Any]] = {}

    def compute(self) -> None:
        """Call them for this step."""
        for key, function in self._functions.items():
            self._values[key] = function()

    def look_up(
        self, inputs: Inputs, numbers: Iterator[int], kind: Any, name: str, params: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """A term for a manager of a traced state; in every trace, terms get the same `numbers`."""
        function, key = look_up_term(kind, name, params), next(numbers)
        check = functools.partial(columns, name=name) if kind == 'observation' else _per_env_of(kind, name)

        def value(state: TracedState) -> Any:
            if key not in self._functions:
                if not is_pure(kind, name):
                    reason = 'it was not registered as `pure`'
                else:
                    try:
                        traced = check(state.traced(function), state)
                        inputs.check(traced)
                        return traced
                    except Exception as error:
                        reason = f'{type(error).__name__}: {error}'
                warn_once('LearningCfg.compiled: %s term %r is called as ever: %s', kind, name, reason)
                self._functions[key] = lambda: np.ascontiguousarray(check(function(self._state), self._state))
                self._values[key] = self._functions[key]()
            return inputs.add(lambda: self._values[key])

        return value


def _per_env_of(kind: str, name: str) -> Callable[[Any, RobotState], Any]:
    return lambda value, state: per_env(value, state, kind, name)
