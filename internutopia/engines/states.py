"""Physics states: what an engine has to be given so that an env goes on to the bit, see `World.get_state`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PhysicsState:
    """The physics of one env: digest of its model, and arrays by names that are the backend's own."""

    model: bytes
    arrays: Mapping[str, NDArray[Any]]

    def misfits(self, own: Mapping[str, NDArray[Any]]) -> list[str]:
        """Return names of the arrays that are missing here, unknown, or of another shape or type than an env's own."""
        form = {name: (array.shape, array.dtype) for name, array in own.items()}
        given = {
            name: (array.shape, array.dtype) if isinstance(array, np.ndarray) else None
            for name, array in self.arrays.items()
        }
        return sorted(str(name) for name in {**form, **given} if form.get(name) != given.get(name) or name not in form)


@dataclass(frozen=True)
class PhysicsStates:
    """The physics of envs at one moment, in what changes from step to step and what seldom does.

    Attributes:
        env_ids: the envs, `(m,)`.
        arrays: what changes, `(m, ...)` each; some are live, and hold until the next call.
        models: of each env, the digest of its model and what seldom changes; the same object as long as it does not.
    """

    env_ids: NDArray[np.intp]
    arrays: Mapping[str, NDArray[Any]]
    models: Sequence[PhysicsState]
