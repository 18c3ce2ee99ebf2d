"""Step buffer: what is recorded of envs in the steps that were made last, in arrays that are written in place.

An env's part of it is taken out, as a `Block`, when its episode ends and when the buffer is full, so that nothing is
done for single envs in a step, and memory is not held by the longest episode.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_STEPS = 32

Ids = NDArray[np.intp]


class Rows(NamedTuple):
    """Rows `(k, ...)` of a column, with the steps of a block `(k,)` that they belong to, ascending."""

    steps: Ids
    values: NDArray[Any]


class Block(NamedTuple):
    """Steps of one episode, one after the other, with the rows of each column.

    A column has several of them if shape or type of its rows changed on the way.
    """

    steps: int
    columns: dict[str, list[Rows]]


class StepBuffer:
    """Columns by name, `(steps, env_num, ...)`; they need not have a row for each env in each step."""

    def __init__(self, env_num: int):
        self._env_num = env_num
        self._columns: dict[str, dict[tuple[Any, ...], _Column]] = {}
        self._made = np.zeros((_STEPS, env_num), bool)
        self._begins = [0] * env_num  # the first step of each env that was not taken
        self._step = 0

    @property
    def full(self) -> bool:
        """True if there is no room for another step."""
        return self._step == _STEPS

    def put(self, name: str, env_ids: Ids, rows: NDArray[Any]) -> None:
        """Write the rows `(m, ...)` of envs into a column, for the step that is made; again if that is tried again."""
        forms = self._columns.setdefault(name, {})
        form = *rows.shape[1:], rows.dtype
        column = forms.get(form)
        if column is None:
            column = forms[form] = _Column(self._env_num, rows)
        column.values[self._step, env_ids] = rows
        column.written[self._step, env_ids] = True

    def advance(self, env_ids: Ids) -> None:
        """Count the step in these envs."""
        self._made[self._step, env_ids] = True
        self._step += 1

    def take(self, env_id: int) -> Block:
        """Take out all of an env."""
        own = slice(self._begins[env_id], self._step)
        self._begins[env_id] = self._step
        made = np.flatnonzero(self._made[own, env_id])
        columns: dict[str, list[Rows]] = {}
        for name, forms in self._columns.items():
            for column in forms.values():
                written = column.written[own, env_id][made]
                if written.all():
                    rows = Rows(np.arange(len(made)), column.values[own, env_id][made])
                elif written.any():
                    rows = Rows(np.flatnonzero(written), column.values[own, env_id][made[written]])
                else:
                    continue
                columns.setdefault(name, []).append(rows)
        return Block(len(made), columns)

    def clear(self) -> None:
        """Clear the buffer; what was not taken is lost."""
        self._columns.clear()
        self._made[:] = False
        self._begins = [0] * self._env_num
        self._step = 0


class _Column:
    """Rows of one shape and type."""

    def __init__(self, env_num: int, rows: NDArray[Any]):
        self.values = np.empty((_STEPS, env_num, *rows.shape[1:]), rows.dtype)
        self.written = np.zeros((_STEPS, env_num), bool)
