"""States of an episode: the physics before its first step and after each one, as arrays of a file and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.world.base import PhysicsState

_ROWS, _STEPS = 'states/', 'state_steps/'
_MODEL = 'model digest'


class StateTrack:
    """Collects states."""

    def __init__(self) -> None:
        self._rows: dict[str, list[NDArray[Any]]] = {}
        self._steps: dict[str, list[int]] = {}
        self._count = 0

    def add(self, state: PhysicsState) -> None:
        """Take the next state; its arrays are kept, not copied."""
        for name, array in {**state.arrays, _MODEL: np.frombuffer(state.model, np.uint8)}.items():
            self._rows.setdefault(name, []).append(array)
            self._steps.setdefault(name, []).append(self._count)
        self._count += 1

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All states by names for a file: rows, one alone where they are equal, and the states that they belong to."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, rows in self._rows.items():
            stacked = np.stack(rows)
            same = stacked.tobytes() == rows[0].tobytes() * len(rows)
            arrays[f'{_ROWS}{name}'] = stacked[:1] if same else stacked
            arrays[f'{_STEPS}{name}'] = np.array(self._steps[name], np.int32)
        return arrays


class States(Sequence[PhysicsState]):
    """The states of a recorded episode, number 0 that before its first step, from what `StateTrack.arrays` made."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]):
        self._rows = {name.removeprefix(_ROWS): rows for name, rows in arrays.items() if name.startswith(_ROWS)}
        self._row_of = {
            name: dict(zip(steps.tolist(), range(len(steps)), strict=True))
            for name in self._rows
            for steps in (arrays[f'{_STEPS}{name}'],)
        }

    @override
    def __len__(self) -> int:
        return len(self._row_of[_MODEL])

    @override
    def __getitem__(self, step: Any) -> PhysicsState:
        if not -len(self) <= step < len(self):
            raise IndexError(step)
        return self._state(step % len(self))

    @override
    def __iter__(self) -> Iterator[PhysicsState]:
        return map(self._state, range(len(self)))

    def rows(self, name: str) -> NDArray[Any]:
        """One array of all states, `(states, ...)`. KeyError if not every state has it."""
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
