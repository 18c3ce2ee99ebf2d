"""States in which one thing is wrong: every part of the state of an env, in turn, replaced by what it is not."""

from __future__ import annotations

import copy
import dataclasses
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from internutopia.core.runner.state import EnvState, SceneState

Spoilt = tuple[str, SceneState]
_FOREIGN: tuple[Any, ...] = (
    *(None, True, -1, 10**30, 1e300, float('nan'), float('inf'), 'x', b'x', object()),
    *([], (), {}, [1, 2, 3], {'a': 1}),
    *(np.zeros(3), np.array(np.nan), np.array('x'), np.array([object()])),
)


def spoilt_states(state: SceneState, row: int, rng: random.Random, values: int) -> Iterator[Spoilt]:
    """The same state with one thing changed in a row, or in what says whose rows they are; and a name of the change.

    Every thing in turn, to so many wrong values.
    """

    def spoilt(value: Any) -> Iterator[tuple[str, Any]]:
        for wrong in rng.sample(found := list(_wrong(value)), min(values, len(found))):
            yield f' = {wrong!r:.40}', wrong
        for place, part, put in _parts(value):
            for where, changed in spoilt(part):
                yield f'{place}{where}', put(changed)

    for field in dataclasses.fields(state):
        for wrong in _wrong(getattr(state, field.name)):
            yield f'{field.name} = {wrong!r:.40}', dataclasses.replace(state, **{field.name: wrong})
    for place, env in spoilt(state.envs[row]):
        envs = (*state.envs[:row], env, *state.envs[row + 1 :])
        yield f'envs[{row}]{place}', dataclasses.replace(state, envs=envs)


def fingerprint(value: Any) -> Any:
    """Something that is equal for what is bitwise identical."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if dataclasses.is_dataclass(value):
        return [(field.name, fingerprint(getattr(value, field.name))) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return [(key, fingerprint(item)) for key, item in value.items()]
    if isinstance(value, np.random.Generator):
        return fingerprint(value.bit_generator.state)
    return [fingerprint(item) for item in value] if isinstance(value, list | tuple | deque) else repr(value)


def _parts(value: Any) -> Iterator[tuple[str, Any, Callable[[Any], Any]]]:
    """What a value consists of: where, what, and how to get the value with another thing there."""
    if isinstance(value, EnvState) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        for field in dataclasses.fields(value):
            yield f'.{field.name}', getattr(value, field.name), _put_field(value, field.name)
    elif isinstance(value, Mapping):
        for key in value:
            yield f'[{key!r}]', value[key], lambda part, key=key: {**value, key: part}
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield f'[{index}]', item, _put_item(value, index)


def _put_field(value: Any, name: str) -> Callable[[Any], Any]:
    def put(part: Any) -> Any:
        changed = copy.copy(value)
        object.__setattr__(changed, name, part)
        return changed

    return put


def _put_item(value: Any, index: int) -> Callable[[Any], Any]:
    def put(part: Any) -> Any:
        items = [*value[:index], part, *value[index + 1 :]]
        return type(value)(*items) if hasattr(value, '_fields') else type(value)(items)

    return put


def _wrong(value: Any) -> Iterator[Any]:
    """What is not like a value; some of it is, for some values."""
    yield from _FOREIGN
    if isinstance(value, np.ndarray):
        yield from (value.tolist(), value[None], value.astype('U'), value.astype(complex), value.astype(object))
        if value.size:
            yield value.ravel()[:-1]
            for number in (np.nan, np.inf, 1e30, -1, 2**31, 3):
                if value.dtype.kind in 'f' or (value.dtype.kind == 'i' and isinstance(number, int)):
                    yield np.concatenate([[number], value.ravel()[1:]]).astype(value.dtype).reshape(value.shape)
    elif isinstance(value, Mapping):
        yield from ({**value, 1: 2}, {**value, 'unknown': 2}, dict(list(value.items())[1:]))
    elif isinstance(value, list | tuple):
        items = list(value)
        yield from (items[:-1], tuple(items[:-1]), [*items, 1], items if isinstance(value, tuple) else tuple(items))
