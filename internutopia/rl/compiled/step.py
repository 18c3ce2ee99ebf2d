"""Compiled step: what is computed in a step besides physics, as kernels for each batch of envs.

One turns actions into targets of joints, one computes the outcome (ends, rewards, timers), and one for each
observer has the observations. The first step of a batch traces what they do and compiles it. A term that is not pure
or cannot be traced is not compiled: it is called once a step, and what it returns is an input of the kernel. Such a
controller is not compiled either.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config.learning import LearningCfg, ObservationTermCfg
from internutopia.core.robot.controller import BaseController
from internutopia.engines.batched.env_batch import EnvBatch
from internutopia.engines.batched.world import BatchedWorld
from internutopia.engines.env_selection import EnvIdSelection
from internutopia.rl.action_format import command
from internutopia.rl.compiled.kernel import Inputs, Kernel
from internutopia.rl.compiled.state import TracedState, TracedTargetCheck
from internutopia.rl.managers import (
    EpisodeArrays,
    RewardManager,
    StepEvaluation,
    TerminationManager,
    evaluate_step,
    per_env,
)
from internutopia.rl.observer import ObservationManager, columns
from internutopia.rl.state import RobotState
from internutopia.rl.terms.registry import is_pure, look_up_term
from internutopia.util.imports import install_hint
from internutopia.util.log import info_once, warn_once

Array = NDArray[np.float32]
Trace = Callable[[TracedState, Inputs, Any], Kernel]
Log = Callable[..., None]  # `warn_once` or `info_once`


class CompiledStep:
    """Kernels of a step.

    Args:
        learning: names the terms.
        state: what they see.
        world: whose envs it is the state of.
        episodes: of these envs.
        controller: gets the actions.
        rewards: whose values and sums are kept.
        observers: managers whose last observations are kept, with their terms.

    Attributes:
        commands: whether the controller is compiled, too, so that `take` and `command` can be called.
    """

    def __init__(
        self,
        learning: LearningCfg,
        state: RobotState,
        world: BatchedWorld,
        episodes: EpisodeArrays,
        controller: BaseController,
        rewards: RewardManager,
        observers: Iterable[tuple[ObservationManager, Sequence[ObservationTermCfg]]],
    ):
        self._learning, self._state, self._episodes = learning, state, episodes
        log = _logger_for(learning)
        self._controller, self._rewards = controller, rewards
        self._shape = controller.action_space().shape or ()
        n, timers = state.env_num, len(episodes.timers)
        self._actions = np.zeros_like(state.actions)
        self._rewarded = np.zeros(n, np.float32)
        # envs that are terminated, truncated, failed; whose reward is invalid; whose timers expired
        self._masks = list(np.zeros((4 + timers, n), bool))
        self._infinite = np.zeros((n, 1), bool)  # whether a number of an observation is not finite

        def kernels(trace: Callable[..., Kernel], *arguments: Any) -> _Kernels:
            return _Kernels(world, _PlainTerms(state, log), functools.partial(trace, *arguments))

        self._evaluate = kernels(self._trace_evaluation)
        self._evaluate.outputs = [self._rewarded, *self._masks]
        self._observe = {manager: kernels(self._trace_observer, manager, terms) for manager, terms in observers}
        self._far = np.zeros((n, 1), bool)  # whether a target is far outside of its joint's limits
        self._first_command = self._command = kernels(self._trace_command, True)
        self._repeated_command = kernels(self._trace_command, False)
        self.commands = self._can_command(log)

    def take(self, actions: Array) -> None:
        """Take the actions `(n, k)` of the next step; rows of envs that do not run are ignored."""
        self._actions[...] = actions
        self._command = self._first_command

    def command(self) -> None:
        """Apply the actions to the robots of the running envs."""
        self._command.run()
        self._command = self._repeated_command
        if np.count_nonzero(self._far):  # numpy does it again, and says where
            self._far[:] = False
            selection = EnvIdSelection(np.flatnonzero(self._episodes.running))
            command(self._state, self._controller, self._shape, self._learning.action.scale is not None, selection)

    def evaluate(self) -> StepEvaluation:
        """See `evaluate_step`."""
        self._evaluate.run()
        terminated, truncated, failed, *masks = self._masks
        invalid, *expired = [mask if np.count_nonzero(mask) else None for mask in masks]
        rewards = self._rewarded.copy()
        return StepEvaluation(rewards, terminated.copy(), truncated.copy(), failed.copy(), invalid, expired)

    def observe(self, manager: ObservationManager, started: NDArray[np.intp] | None = None) -> bool:
        """Compute the observations of a manager; returns True if all numbers are finite.

        Args:
            manager: the manager.
            started: envs `(m,)` whose episodes have started, for their first ones; None for all envs.
        """
        if started is None:
            manager.before, manager.last = manager.last, manager.before
        self._infinite[:] = False
        self._observe[manager].run(started)
        return not np.count_nonzero(self._infinite)

    def _can_command(self, log: Log) -> bool:
        """Return True if the controller can be compiled; log the reason if not."""
        if not vars(type(self._controller)).get('pure', False):
            reason = 'its class is not `pure`'
        else:
            try:
                self._first_command.find_calls()
                return True
            except Exception as error:
                reason = f'{type(error).__name__}: {error}'
        log('LearningCfg.compiled: controller %r is not compiled: %s', self._controller.config.name, reason)
        return False

    def _trace_command(self, first: bool, state: TracedState, inputs: Inputs, look_up: Any) -> Kernel:
        real = self._state
        if first:
            last, state.actions = (inputs.add(array, written=True) for array in (real.last_actions, real.actions))
            last[...] = state.actions
            state.actions[...] = inputs.add(self._actions)
        controller = state.controller(self._controller)
        far = inputs.add(self._far, written=True)
        view: Any = state.articulation.view
        view.target_check = TracedTargetCheck(view, far)
        scaled = self._learning.action.scale is not None
        command(state, controller, self._shape, scaled, EnvIdSelection(np.zeros(1, np.intp)))
        return Kernel(inputs, where=inputs.add(self._episodes.running))

    def _trace_evaluation(self, state: TracedState, inputs: Inputs, look_up: Any) -> Kernel:
        real, episodes = self._state, self._episodes
        terminations = TerminationManager(self._learning.terminations, state, look_up)
        rewards = RewardManager(self._learning.rewards, state, real.reward_sums, look_up)
        state.reward_sums = {name: inputs.add(total, written=True) for name, total in real.reward_sums.items()}
        traced = EpisodeArrays(
            running=inputs.add(episodes.running),
            limits=inputs.add(episodes.limits),
            returns=inputs.add(episodes.returns, written=True),
            failed=inputs.add(lambda: episodes.failed),
            done=inputs.add(lambda: episodes.done),
            timers=[inputs.add(timer, written=True) for timer in episodes.timers],
        )
        evaluation = evaluate_step(state, traced, terminations, rewards)
        own = self._rewards.values = self._rewards.values or [np.zeros_like(self._rewarded) for _ in rewards.values]
        ends = evaluation.terminated, evaluation.truncated, evaluation.failed
        outputs: list[Any] = [evaluation.rewards, *ends, evaluation.invalid, *evaluation.expired, *rewards.values]
        places = [self._rewarded, *self._masks, *own]
        return Kernel(inputs, list(zip(outputs, places, strict=True)))

    def _trace_observer(
        self,
        manager: ObservationManager,
        terms: Sequence[ObservationTermCfg],
        state: TracedState,
        inputs: Inputs,
        look_up: Any,
    ) -> Kernel:
        traced = ObservationManager(terms, state, look_up)
        for index, history in enumerate(manager.histories):
            if history is not None:
                traced.histories[index] = [inputs.add(history[0])]
        observed = traced.compute()
        manager.sizes = traced.sizes
        shape = self._state.env_num, observed.shape[1]
        for name in ('last', 'before'):
            if getattr(manager, name).shape != shape:
                setattr(manager, name, np.zeros(shape, np.float32))
        outputs: list[Any] = [(observed, lambda: manager.last)]
        if observed.shape[1]:
            outputs.append((~np.isfinite(observed).all(axis=-1, keepdims=True), self._infinite))
        return Kernel(inputs, outputs)


def compile_step(
    learning: LearningCfg,
    state: RobotState,
    episodes: EpisodeArrays,
    controller: BaseController,
    rewards: RewardManager,
    observers: Iterable[tuple[ObservationManager, Sequence[ObservationTermCfg]]],
) -> CompiledStep | None:
    """Compile the supported parts of a step, see `CompiledStep`; None, and a logged reason, if none is."""
    world = state.world
    if state.arrays.on_device or not isinstance(world, BatchedWorld):
        reason = "the arrays are a device's" if state.arrays.on_device else 'the physics engine shows no arrays'
    elif find_spec('llvmlite') is None:
        reason = f'llvmlite is not installed: {install_hint("compile")}'
    else:
        return CompiledStep(learning, state, world, episodes, controller, rewards, observers)
    _logger_for(learning)('LearningCfg.compiled: terms are not compiled, %s', reason)
    return None


def _logger_for(learning: LearningCfg) -> Log:
    """Return the log function for what is not compiled: a warning where compilation was requested."""
    return warn_once if learning.compiled is True else info_once


class _Kernels:
    """A kernel for each batch of envs, traced when it is needed first.

    Args:
        world: has the batches.
        plain: terms that are not compiled.
        trace: traces what is computed, with what looks up terms for managers.

    Attributes:
        outputs: arrays that are zero for envs without a scene.
    """

    def __init__(self, world: BatchedWorld, plain: _PlainTerms, trace: Trace):
        self._world, self._plain, self._trace = world, plain, trace
        self.outputs: Sequence[NDArray[Any]] = ()
        self._kernels: dict[int, Kernel] = {}  # by id of the batch
        self._calls: list[Callable[[], None]] = []
        self._placement = b''  # of the envs when the calls were found

    def run(self, envs: NDArray[np.intp] | None = None) -> None:
        """Compute for some envs that hold a scene; None means all."""
        self._plain.compute()
        if self._placement != self._world.placement:
            self.find_calls()
        for call in self._calls if envs is None else self._calls_of(envs):
            call()

    def find_calls(self) -> None:
        """Trace a kernel for each batch, and note the envs that it is called for."""
        for output in self.outputs:
            output[:] = 0
        kernels, self._kernels, self._calls = self._kernels, {}, []
        for batch in self._world.env_batches:
            if batch.id in kernels:
                self._kernels[batch.id] = kernels[batch.id]
            if batch.used:
                if batch.id not in self._kernels:
                    self._kernels[batch.id] = self._compiled(batch)
                slots = np.flatnonzero(batch.envs >= 0)
                self._calls.append(self._kernels[batch.id].of_rows(batch.envs[slots], slots))
        self._placement = self._world.placement

    def _calls_of(self, envs: NDArray[np.intp]) -> Iterator[Callable[[], None]]:
        """Yield a call for each batch that some of these envs are in."""
        batch_ids = self._world.batch_id[envs]
        for batch_id, kernel in self._kernels.items():
            if len(own := envs[batch_ids == batch_id]):
                yield kernel.of_rows(own, self._world.slot[own])

    def _compiled(self, batch: EnvBatch) -> Kernel:
        inputs = Inputs()
        state = TracedState(self._plain.state, batch, inputs)
        look_up = functools.partial(self._plain.look_up, inputs, itertools.count())
        return self._trace(state, inputs, look_up)


class _PlainTerms:
    """Terms that are called without compilation; their values are inputs."""

    def __init__(self, state: RobotState, log: Log):
        self.state, self._log = state, log
        self._functions: dict[int, Callable[[], NDArray[Any]]] = {}
        self._values: dict[int, NDArray[Any]] = {}

    def compute(self) -> None:
        """Call the terms for this step."""
        for key, function in self._functions.items():
            self._values[key] = function()

    def look_up(
        self, inputs: Inputs, numbers: Iterator[int], kind: Any, name: str, params: Mapping[str, Any]
    ) -> Callable[..., Any]:
        """Return a term for a manager of a traced state; in every trace, terms get the same `numbers`."""
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
                self._log('LearningCfg.compiled: %s term %r is not compiled: %s', kind, name, reason)
                self._functions[key] = lambda: np.ascontiguousarray(check(function(self.state), self.state))
                self._values[key] = self._functions[key]()
            return inputs.add(lambda: self._values[key])

        return value


def _per_env_of(kind: str, name: str) -> Callable[[Any, RobotState], Any]:
    return lambda value, state: per_env(value, state, kind, name)
