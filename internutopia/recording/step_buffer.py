"""Step buffer: what is recorded of envs in the last steps, written in place; states of an episode as arrays of a file.

An env's part of it is taken out, as a `Block`, when its episode ends and when the buffer is full, so that nothing is
done for single envs in a step, and memory is not held by the longest episode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.base import PhysicsState

_STEPS = 32

Ids = NDArray[np.intp]


class Rows(NamedTuple):
    """Rows `(k, ...)` of a column, with the steps of a block `(k,)` that they belong to, ascending."""

    steps: Ids
    values: NDArray[Any]


class Block(NamedTuple):
    """Steps of one episode, in sequence, with the rows of each column.

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


_ROWS_OF, _STEPS_OF = 'states/', 'state_steps/'
_MODEL = 'model digest'


class StateTrack:
    """Collector of the states of an episode, which count from 0."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Rows]] = {}
        self._models: list[tuple[int, PhysicsState]] = []  # with the first state that each belongs to

    def add(self, name: str, rows: Rows) -> None:
        """Take one array of some states, whose numbers are the steps of the rows."""
        self._rows.setdefault(name, []).append(rows)

    def add_model(self, state: int, model: PhysicsState) -> None:
        """Take what seldom changes, from a state on, and until another one is taken."""
        self._models.append((state, model))

    def arrays(self, count: int) -> dict[str, NDArray[Any]]:
        """Return so many states by names for a file: rows, one alone where they are equal.

        The numbers of the states of rows are stored with them unless they are all.
        """
        arrays: dict[str, NDArray[Any]] = {}
        for name, parts in {**self._rows, **self._model_rows(count)}.items():
            rows = np.concatenate([part.values for part in parts])
            same = rows[-1].tobytes() == rows[0].tobytes() and rows.tobytes() == rows[0].tobytes() * len(rows)
            arrays[f'{_ROWS_OF}{name}'] = rows[:1] if same else rows
            if name == _MODEL or len(rows) < count:
                arrays[f'{_STEPS_OF}{name}'] = np.concatenate([part.steps for part in parts]).astype(np.int32)
        return arrays

    def _model_rows(self, count: int) -> dict[str, list[Rows]]:
        rows: dict[str, list[Rows]] = {}
        ends = [state for state, _ in self._models[1:]]
        for (begin, model), end in zip(self._models, [*ends, count], strict=True):
            for name, array in {**model.arrays, _MODEL: np.frombuffer(model.model, np.uint8)}.items():
                values = np.broadcast_to(array, (end - begin, *array.shape))
                rows.setdefault(name, []).append(Rows(np.arange(begin, end), values))
        return rows


class States:
    """The states of a recorded episode, number 0 that before its first step, from what `StateTrack.arrays` made."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]):
        self._rows = {name.removeprefix(_ROWS_OF): rows for name, rows in arrays.items() if name.startswith(_ROWS_OF)}
        every = arrays[f'{_STEPS_OF}{_MODEL}']
        self._row_of = {
            name: dict(zip(steps.tolist(), range(len(steps)), strict=True))
            for name in self._rows
            for steps in (arrays.get(f'{_STEPS_OF}{name}', every),)
        }

    def __len__(self) -> int:
        return len(self._row_of[_MODEL])

    def __getitem__(self, step: int) -> PhysicsState:
        if not 0 <= step < len(self):
            raise IndexError(f'there are states 0 to {len(self) - 1}, not {step}')
        return self._state(step)

    def __iter__(self) -> Iterator[PhysicsState]:
        return map(self._state, range(len(self)))

    def rows(self, name: str) -> NDArray[Any]:
        """Return one array of all states, `(states, ...)`. KeyError if not every state has it."""
        if len(self._row_of[name]) != len(self):
            raise KeyError(name)
        return np.broadcast_to(self._rows[name], (len(self), *self._rows[name].shape[1:]))

    def _state(self, step: int) -> PhysicsState:
        arrays = {
            name: rows[min(self._row_of[name][step], len(rows) - 1)]
            for name, rows in self._rows.items()
            if step in self._row_of[name]
        }
        return PhysicsState(arrays.pop(_MODEL).tobytes(), {name: np.array(row) for name, row in arrays.items()})
