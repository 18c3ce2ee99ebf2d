"""Observations and results of a step: nested dicts of arrays, which the list API fills when they are read.

A step copies the arrays of a batched robot once (`ObservedRows`). An env's dict is filled from its rows when it is
first read: an unread observation costs next to nothing, and a kept one never changes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, wraps
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from internutopia.util.conventions import StepColumns

_IMMUTABLE = (bool, int, float, str, type(None))


class ReadRows(Sequence[Any]):
    """Sequence with an entry for each env, made when it is read, as few are; a step keeps what it is made from.

    Args:
        kept: one entry per env, which must not be changed.
        make: returns a new value for an entry.
    """

    def __init__(self, kept: Sequence[Any], make: Callable[[Any], Any]):
        self._kept, self._make = kept, make

    def __len__(self) -> int:
        return len(self._kept)

    def __getitem__(self, index: Any) -> Any:
        kept = self._kept[index]
        return ReadRows(kept, self._make) if isinstance(index, slice) else self._make(kept)

    def __deepcopy__(self, memo: dict[int, Any]) -> ReadRows:
        return self

    def take(self, env_ids: Sequence[int]) -> ReadRows:
        """Return those of some envs."""
        return ReadRows(list(map(self._kept.__getitem__, env_ids)), self._make)


class ObservedRows:
    """Copy of what was observed in some envs: rows of a tree of arrays `(env_num, ...)`.

    Lists and `ReadRows` have one entry per env, whose sizes may differ.
    """

    def __init__(self, tree: Mapping[str, Any], env_ids: NDArray[np.intp]):
        self._env_ids = env_ids
        self._rows = _rows_of(tree, env_ids)

    @cached_property
    def _index(self) -> dict[int, int]:
        return {env_id: index for index, env_id in enumerate(self._env_ids.tolist())}

    @cached_property
    def _kept(self) -> dict[str, Any]:
        """Copy of the rows that no user has views of."""
        return _copied(self._rows)

    def columns(self, env_ids: Sequence[int]) -> Mapping[str, Any]:
        """Return the rows of envs, which users have views of: arrays `(n, ...)` to be read, lists of plain values."""
        if list(self._index) == env_ids:
            return self._rows
        return _rows_of(self._rows, np.array([self._index[env_id] for env_id in env_ids], np.intp))

    def of(self, env_id: int) -> dict[str, Any]:
        """Return the observation of an env: views of its rows, which its user may change, and plain Python values."""
        _ = self._kept  # before they are changed
        return _row_at(self._rows, self._index[env_id])

    def original(self, env_id: int) -> dict[str, Any]:
        """Return a copy of the observation of an env as it was, whatever its user has done to it."""
        return _row_at(_rows_of(self._kept, np.array([self._index[env_id]])), 0)


class LazyDict(dict[str, Any]):
    """Dict that is filled when it is first used.

    Until then it holds its keys, so C code that reads its size alone is right; all else that Python calls fills it
    first. Shallow copies and pickles are plain dicts. C code that reads the memory of a class derived from dict without
    calling its methods (orjson), and code that requests the exact type (`type(x) is dict`), need `dict(x)`.
    """

    __slots__ = ()

    def _open(self) -> None:
        """Fill it, unless it is."""
        raise NotImplementedError

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return dict, (dict(self),)

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(dict(self), memo)


class Observation(LazyDict):
    """Observation of an env, `{robot name: observation}`.

    Once filled it is an `OpenedObservation`, a dict without methods of its own. Until then C code finds `ObservedRows`
    in its memory, which it refuses.
    """

    __slots__ = ('_env_id', '_source')

    _env_id: int
    _source: tuple[Mapping[str, ObservedRows], bool]

    @classmethod
    def of_envs(cls, rows: Mapping[str, ObservedRows], env_ids: Sequence[int], frame_due: bool) -> list[Observation]:
        """Return the observations of envs.

        Args:
            rows: where the robots' observations are, by name.
            env_ids: the envs.
            frame_due: what `render` says in each.
        """
        observations: list[Observation] = list(
            map(cls, repeat(rows, len(env_ids)))
        )  # an `__init__` would take half as long again
        source = rows, frame_due
        for observation, env_id in zip(observations, env_ids, strict=True):
            observation._env_id = env_id
            observation._source = source
        return observations

    def original(self) -> dict[str, Any]:
        """Return a copy of the observation as it was, whatever was done to this one."""
        rows, frame_due = self._source
        return {name: {**each.original(self._env_id), 'render': frame_due} for name, each in rows.items()}

    def _open(self) -> None:
        for name, rows in dict.items(self):
            if isinstance(rows, ObservedRows):  # else another thread was here
                row = rows.of(self._env_id)
                row['render'] = self._source[1]
                dict.__setitem__(self, name, row)
        object.__setattr__(self, '__class__', OpenedObservation)


class OpenedObservation(Observation):
    """Observation that is filled."""

    __slots__ = ()


def _opening(name: str) -> Callable[..., Any]:
    method = getattr(dict, name)

    @wraps(method)
    def open_first(self: LazyDict, *args: Any, **kwargs: Any) -> Any:
        for each in (self, *args):  # `==` reads the memory of both
            if isinstance(each, LazyDict):
                each._open()
        return method(self, *args, **kwargs)

    return open_first


for _name in (
    *('__contains__', '__delitem__', '__eq__', '__getitem__', '__ior__', '__iter__', '__len__', '__ne__', '__or__'),
    *('__repr__', '__reversed__', '__ror__', '__setitem__', '__sizeof__', 'clear', 'copy', 'get', 'items', 'keys'),
    *('pop', 'popitem', 'setdefault', 'update', 'values'),
):
    setattr(LazyDict, _name, _opening(_name))
    if _name not in ('__eq__', '__ne__'):  # the other one may be unfilled
        setattr(OpenedObservation, _name, getattr(dict, _name))


def split_rows(tree: Mapping[str, Any], env_ids: NDArray[np.intp]) -> list[dict[str, Any]]:
    """Return one dict per env from a tree of arrays `(env_num, ...)`: rows are copies, scalars plain Python values."""
    rows = ObservedRows(tree, env_ids)
    return list(map(rows.of, env_ids.tolist()))


def own_values(tree: Any) -> Any:
    """Copy an observation of one env where a class returns views of its state; no arrays of rank 0."""
    if isinstance(tree, LazyDict):
        return copy.deepcopy(tree)
    if isinstance(tree, Mapping):
        return {key: own_values(value) for key, value in tree.items()}
    if isinstance(tree, np.ndarray) and tree.ndim:
        return tree.copy()
    return tree.item() if isinstance(tree, np.ndarray | np.generic) else tree


def _rows_of(tree: Mapping[str, Any], env_ids: NDArray[np.intp]) -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for name, item in tree.items():
        if isinstance(item, Mapping):
            rows[name] = _rows_of(item, env_ids) if item else {}
        elif isinstance(item, ReadRows):
            rows[name] = item.take(env_ids.tolist())
        elif isinstance(item, list):
            rows[name] = [own_values(item[env_id]) for env_id in env_ids.tolist()]
        else:
            array = np.asarray(item).take(env_ids, axis=0)  # faster than an index
            rows[name] = array if array.ndim > 1 else array.tolist()
    return rows


def _row_at(rows: Mapping[str, Any], index: int) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, item in rows.items():  # a comprehension takes half as long again
        row[name] = _row_at(item, index) if type(item) is dict else item[index]
    return row


def plain(observation: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an observation that is filled, with nothing in it that is to be."""
    if observation is None:
        return None
    filled = dict(observation)
    for name, row in filled.items():
        sensors = row.get('sensors') if isinstance(row, dict) else None
        if sensors and isinstance(sensors, dict):
            own = {key: dict(data) if isinstance(data, LazyDict) else data for key, data in sensors.items()}
            filled[name] = {**row, 'sensors': own}
    return filled


class StepResult(NamedTuple):
    """Result of a step in one env, all None for an env without an episode."""

    observation: dict[str, Any] | None
    reward: float | None
    terminated: bool | None
    truncated: bool | None
    info: dict[str, Any] | None

    def __deepcopy__(self, memo: dict[int, Any]) -> StepResult:
        observation, *rest = self
        return StepResult(original(observation), *map(_copied, rest))


def original(observation: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a copy of an observation as it was, whatever the user who has it did to it; of a plain dict as it is."""
    return observation.original() if isinstance(observation, Observation) else _copied(observation)


EMPTY_RESULT = StepResult(None, None, None, None, None)


def columns_of_results(results: Iterable[StepResult]) -> StepColumns:
    """Return the results of a step, one for each env, as one list per kind."""
    observation, reward, terminated, truncated, info = map(list, zip(*results, strict=True))
    return observation, reward, terminated, truncated, info


def repeat_result(result: StepResult) -> StepResult:
    """Return a copy of the last result of an env that has ended; shares nothing with it."""
    return copy.deepcopy(result)._replace(reward=0.0)


def _copied(value: Any) -> Any:
    """Return a deep copy, in a quarter of the time for common types; near the end of a run most envs have ended."""
    kind = type(value)
    if kind is dict:
        return {key: _copied(item) for key, item in value.items()}
    if kind is list:
        return list(map(_copied, value))
    if kind is np.ndarray and not value.dtype.hasobject:
        return value.copy()
    return value if kind in _IMMUTABLE else copy.deepcopy(value)
