"""Env selection: some of the envs, in the form that suits the machine.

On the host those are their ids. On a device it is a mask: to count or list them the host would have to wait. What is
computed for some envs has one row for each of them on the host, and rows for all envs on a device, of which the others
do not count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.base import DeviceWorld, World
from internutopia.util.arrays import masked_assign, to_host


class EnvSelection(ABC):
    """Some envs.

    Attributes:
        ids: env ids `(m,)` for setters and terms; on a device all of them, `m = n`.
        host_ids: env ids; for those of a mask the host waits.
        index: index into arrays of all envs, to write a number: the ids or the mask.
        any: whether the selection may hold an env.
    """

    ids: Any
    host_ids: NDArray[np.intp]
    index: Any
    any: bool

    @abstractmethod
    def take(self, array: Any) -> Any:
        """Return `array[ids]`."""

    @abstractmethod
    def put(self, array: Any, values: Any) -> None:
        """Set `array[ids] = values`, in place, values being `(m, ...)` or a number."""

    @abstractmethod
    def joined(self, others: EnvSelection) -> EnvSelection:
        """Return these envs and others, which are of the same kind."""

    @abstractmethod
    def without(self, others: Any) -> EnvSelection:
        """Return the envs that are not in a mask `(n,)`."""

    @abstractmethod
    def masked_writes(self) -> AbstractContextManager[None]:
        """Return a context in which setters of the world that are passed `ids` change no other envs."""


class EnvIdSelection(EnvSelection):
    """Envs by their ids `(m,)`; masks are those of the host."""

    def __init__(self, ids: NDArray[np.intp]):
        self.ids = self.host_ids = self.index = ids
        self.any = len(ids) > 0

    @override
    def take(self, array: Any) -> Any:
        return array[self.ids]

    @override
    def put(self, array: Any, values: Any) -> None:
        array[self.ids] = values

    @override
    def joined(self, others: EnvSelection) -> EnvIdSelection:
        return EnvIdSelection(np.union1d(self.ids, others.host_ids))

    @override
    def without(self, others: NDArray[np.bool_]) -> EnvIdSelection:
        return EnvIdSelection(self.ids[~others[self.ids]])

    @override
    def masked_writes(self) -> AbstractContextManager[None]:
        return nullcontext()


class EnvMaskSelection(EnvSelection):
    """Envs by a mask on the device, bool `(n,)`; rows of other envs in what is taken do not count."""

    any = True

    def __init__(self, world: DeviceWorld, mask: Any):
        self._world = world
        self.index = mask
        self.ids = world.arrays.arange(world.env_num)

    @property
    def host_ids(self) -> NDArray[np.intp]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Env ids; the host waits."""
        return np.flatnonzero(to_host(self.index))

    @override
    def take(self, array: Any) -> Any:
        return array

    @override
    def put(self, array: Any, values: Any) -> None:
        masked_assign(array, self.index, values)

    @override
    def joined(self, others: EnvSelection) -> EnvMaskSelection:
        return EnvMaskSelection(self._world, self.index | others.index)

    @override
    def without(self, others: Any) -> EnvMaskSelection:
        return EnvMaskSelection(self._world, self.index & ~self._world.arrays.asarray(others))

    @override
    def masked_writes(self) -> AbstractContextManager[None]:
        return self._world.masked_writes(self.index)


def select_envs(world: World, mask: Any) -> EnvSelection:
    """Return the envs of a mask, bool `(n,)`, of the kind that the world's arrays are."""
    return EnvMaskSelection(world, mask) if isinstance(world, DeviceWorld) else EnvIdSelection(mask.nonzero()[0])
