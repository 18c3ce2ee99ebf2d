"""Vector envs that people use, gymnasium's and EnvPool's, in a race with ours.

All contenders get the same actions and are reset at the same steps.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

import gymnasium
from numpy.typing import NDArray

from internutopia.bench.measure import Row, Step, race

Contender = tuple[Callable[[], object], Step]  # its reset and its step
Maker = Callable[[ExitStack, NDArray[Any]], Contender]  # takes the actions of all steps, `(steps, envs, ...)`

_PIP = {'imageio': "'gymnasium[mujoco]'", 'envpool': 'envpool'}  # how to get a module


class VectorEnvRace:
    """Contenders by name, as they are called in rows.

    Args:
        what: is simulated.
        makers: of contenders; those that fork come first, before there are threads.
        modules: what contenders need, if it may be missing.
    """

    def __init__(self, what: str, makers: Mapping[str, Maker], modules: Mapping[str, str]):
        self._what = what
        self._makers = makers
        self._missing = {
            name: _PIP[module] for name, module in modules.items() if importlib.util.find_spec(module) is None
        }

    def rows(
        self, actions: NDArray[Any], rounds: int, turn: int, pairs: Sequence[tuple[str, str, float | None]]
    ) -> list[Row]:
        """A row for each pair of a contender and its reference, with the bound of their ratio."""
        steps, env_num = actions.shape[:2]
        with ExitStack() as stack:
            contenders = {
                name: make(stack, actions) for name, make in self._makers.items() if name not in self._missing
            }

            def reset() -> None:
                for reset_one, _ in contenders.values():
                    reset_one()

            steppers = {name: step for name, (_, step) in contenders.items()}
            result = race(steppers, reset, rounds=rounds, steps=steps, turn=turn)

        def row(ours: str, reference: str, bound: float | None) -> Row:
            what = f'{self._what}, {env_num} envs: {ours} vs {reference}'
            if reference in self._missing:
                return Row(what, 'env steps/s', bound=bound, note=f'skipped: pip install {self._missing[reference]}')
            seconds = result.median(ours), result.median(reference)
            return Row(
                what, 'env steps/s', *(env_num / s for s in seconds), ratio=result.speed(ours, reference), bound=bound
            )

        return [row(*pair) for pair in pairs]


def one_by_one(vectorize: Callable[..., Any], env: str) -> Maker:
    """Gymnasium's envs of an id, each its own object, in one of its classes of vector envs."""

    def make(stack: ExitStack, actions: NDArray[Any]) -> Contender:
        envs = vectorize([functools.partial(gymnasium.make, env)] * actions.shape[1])
        return _contender(stack, envs, actions)

    return make


def at_once(env: str) -> Maker:
    """Gymnasium's own batched env of an id."""

    def make(stack: ExitStack, actions: NDArray[Any]) -> Contender:
        envs = gymnasium.make_vec(env, num_envs=actions.shape[1], vectorization_mode='vector_entry_point')
        return _contender(stack, envs, actions)

    return make


def envpool(env: str) -> Maker:
    """EnvPool's envs of an id, on all cores."""

    def make(stack: ExitStack, actions: NDArray[Any]) -> Contender:
        package: Any = importlib.import_module('envpool')
        envs = package.make(env, env_type='gymnasium', num_envs=actions.shape[1], num_threads=os.cpu_count())
        return _contender(stack, envs, actions)

    return make


def _contender(stack: ExitStack, envs: Any, actions: NDArray[Any]) -> Contender:
    stack.enter_context(closing(envs))
    return envs.reset, lambda k: envs.step(actions[k])
