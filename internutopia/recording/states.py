"""States of an episode: the physics before its first step and after each one, as arrays of a file and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.base import PhysicsState
from internutopia.recording.step_buffer import Rows

_ROWS, _STEPS = 'states/', 'state_steps/'
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
            arrays[f'{_ROWS}{name}'] = rows[:1] if same else rows
            if name == _MODEL or len(rows) < count:
                arrays[f'{_STEPS}{name}'] = np.concatenate([part.steps for part in parts]).astype(np.int32)
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
        self._rows = {name.removeprefix(_ROWS): rows for name, rows in arrays.items() if name.startswith(_ROWS)}
        every = arrays[f'{_STEPS}{_MODEL}']
        self._row_of = {
            name: dict(zip(steps.tolist(), range(len(steps)), strict=True))
            for name in self._rows
            for steps in (arrays.get(f'{_STEPS}{name}', every),)
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
