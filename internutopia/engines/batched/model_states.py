"""Model states: what seldom changes of the states of envs, kept until it does.

To compare all models after each step would cost more than the step of a small robot. What has per-slot values is
compared with what it was only when a batch says that it may have changed, and for all slots at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.batched.env_batch import Arrays, EnvBatch
from internutopia.engines.states import PhysicsState
from internutopia.model.compiled import CompiledScene


class ModelStates:
    """The model states of envs, made by `make` from batch, slot and the scene that runs there."""

    def __init__(self, make: Callable[[EnvBatch, int, CompiledScene], PhysicsState]):
        self._make = make
        self._batches: WeakKeyDictionary[EnvBatch, _BatchModels] = WeakKeyDictionary()

    def of(
        self, env_batch: EnvBatch, slots: NDArray[np.integer], scenes: Sequence[CompiledScene]
    ) -> list[PhysicsState]:
        """Return the model states of slots that run these scenes; the same objects as before where nothing changed."""
        models = self._batches.setdefault(env_batch, _BatchModels())
        models.forget_changed(env_batch)
        states: list[PhysicsState] = []
        for slot, scene in zip(slots.tolist(), scenes, strict=True):
            known = models.states.get(slot)
            if known is None or known[0] is not scene:
                known = models.states[slot] = scene, self._make(env_batch, slot, scene)
            states.append(known[1])
        return states


class _BatchModels:
    """Cached scenes and model states of one batch, by slot."""

    def __init__(self) -> None:
        self.states: dict[int, tuple[CompiledScene, PhysicsState]] = {}
        self._fields: Arrays = {}
        self._version = 0

    def forget_changed(self, env_batch: EnvBatch) -> None:
        """Forget the slots whose model fields are not what they were."""
        if env_batch.model_version == self._version:
            return
        self._version = env_batch.model_version
        before, self._fields = self._fields, {n: rows.copy() for n, rows in env_batch.expanded_fields().items()}
        for name, rows in self._fields.items():
            if name not in before or before[name].shape != rows.shape:
                self.states.clear()
                return
            changed = (before[name] != rows).reshape(len(rows), -1).any(axis=1)
            for slot in np.flatnonzero(changed).tolist():
                self.states.pop(slot, None)
