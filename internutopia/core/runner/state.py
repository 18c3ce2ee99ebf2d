"""State of envs, from which they continue bit for bit, and the form in which alone it is taken again.

A `SceneState` holds, for each env that it was taken from:

- physics: everything that the engine integrates (positions, velocities, activations, controls, forces applied, mocap
  poses, warm start of the solver, time) and what was changed in this env's model (gains, masses, friction, ...);
- the last measurements: efforts, contact forces, readings of physics by sensors;
- the episode: number of steps, whether it ended, its last result, the key of its noise;
- the state of the Python objects (see `object_state`): task, metrics, reward, robots, controllers, sensors;
- the form of all that (see `state_form`), in which alone it is taken again.

The step counter of the Env, which says when frames are due, follows if the state is put into all envs that hold an
episode. Not in it: the queue of episodes, results that were written, and pictures that were taken.

A state is plain data that can be pickled, also into another process; it fits every env that runs the same task config
on the same models.

A list that a class keeps stays a list of as many things, a number that was finite stays finite; which numbers and texts
there are may change. So an env is never put into a state that its classes cannot continue from.

The form of a mapping, sequence or dataclass is the name of its type and the forms of what is in it, by where it is
(`['name']`, `[0]`, `.name`); that of anything else is text.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from internutopia.core.observations import StepResult
from internutopia.engines.base import PhysicsState

Form = str | tuple[str, Mapping[str, Any]]

_LEAST, _MOST = -(2**63), 2**64 - 1  # that fit into an integer of numpy
_SIMPLE = {str, bool, type(None), bytes}
_ARRAYS = np.ndarray, np.generic
_SEQUENCES = list, tuple, deque


def form_of(value: Any) -> Form:
    """Return the form of a value."""
    kind = type(value)
    name = kind.__name__
    if kind in _SIMPLE:
        return name
    if kind is float:
        return name if math.isfinite(value) else f'{name}, not finite'
    if kind is int:
        return name if _LEAST <= value <= _MOST else f'{name} beyond 64 bits'
    if isinstance(value, _ARRAYS):
        finite = value.dtype.kind not in 'fc' or np.isfinite(value).all()
        return _name_of_arrays(name, value.dtype, value.shape, bool(finite))
    if kind is dict or isinstance(value, Mapping):
        return name, {f'[{key!r}]': form_of(item) for key, item in value.items()}
    if isinstance(value, _SEQUENCES):
        fields = getattr(value, '_fields', None)  # of a named tuple
        places = (f'[{index}]' for index in range(len(value))) if fields is None else (f'.{field}' for field in fields)
        return name, {place: form_of(item) for place, item in zip(places, value, strict=True)}
    if isinstance(value, (set, frozenset)):
        return f'{name} of {sorted({str(form_of(item)) for item in value})}'
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return name, {f'.{field.name}': form_of(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return name


@cache
def _name_of_arrays(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], finite: bool) -> str:
    return f'{name} of {dtype} {shape}' + ('' if finite else ', not finite')


def is_form(value: Any) -> bool:
    """Return True if a value is a form."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping):
        return isinstance(value[0], str) and all(map(is_form, value[1].values()))
    return isinstance(value, str)


def difference(form: Form, expected: Form, place: str = '') -> str | None:
    """Return the first place where a form differs from the expected one, with both; None if there is none."""
    if form == expected:
        return None
    if isinstance(form, str) or isinstance(expected, str) or form[0] != expected[0]:
        return f'{place} is {_name(form)}, and was {_name(expected)} when the state was taken'
    parts, known = form[1], expected[1]
    for where in {**known, **parts}:
        if where not in parts:
            return f'{place}{where} is missing'
        if where not in known:
            return f'{place}{where} was not there when the state was taken'
        if found := difference(parts[where], known[where], f'{place}{where}'):
            return found
    return None


def _name(form: Form) -> str:
    return form if isinstance(form, str) else form[0]


VERSION = 2


@dataclass(frozen=True)
class EnvState:
    """State of one env. `task` is its task config as JSON by field, `step_dt` the length of its steps [s]."""

    task: Mapping[str, str]
    step_dt: float
    physics: PhysicsState
    noise_key: int
    step: int
    ended: bool
    last: StepResult
    object_state: Mapping[str, Any]
    form: Form


@dataclass(frozen=True)
class SceneState:
    """State of some envs, made by `Env.get_state`; row k of `envs` was taken from env `env_ids[k]`.

    `step_count` is the number of steps that the Env had made.
    """

    env_ids: tuple[int, ...]
    envs: tuple[EnvState, ...]
    step_count: int
    version: int = VERSION

    def __len__(self) -> int:
        return len(self.envs)
