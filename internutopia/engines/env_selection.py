"""Env selection: some of the envs, in the form that suits the machine.

On the host those are their ids. On a device it is a mask: to count or list them the host would have to wait. What is
computed for some envs has one row for each of them on the host, and rows for all envs on a device, of which the others
do not count.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.base import DeviceWorld, World
from internutopia.util.arrays import masked_assign, to_host


class EnvSelection(Protocol):
    """Some envs."""

    @property
    def ids(self) -> Any:
        """Env ids `(m,)` for setters and terms; on a device all of them, `m = n`."""
        ...

    @property
    def host_ids(self) -> NDArray[np.intp]:
        """Env ids; for those of a mask the host waits."""
        ...

    @property
    def index(self) -> Any:
        """Index into arrays of all envs, to write a number: the ids or the mask."""
        ...

    @property
    def any(self) -> bool:
        """True if the selection may hold an env."""
        ...

    def take(self, array: Any) -> Any:
        """Return `array[ids]`."""
        ...

    def put(self, array: Any, values: Any) -> None:
        """Set `array[ids] = values`, in place, values being `(m, ...)` or a number."""
        ...

    def joined(self, others: EnvSelection) -> EnvSelection:
        """Return these envs and others, which are of the same kind."""
        ...

    def without(self, others: Any) -> EnvSelection:
        """Return the envs that are not in a mask `(n,)`."""
        ...

    def masked_writes(self) -> AbstractContextManager[None]:
        """Return a context in which setters of the world that are passed `ids` change no other envs."""
        ...


class EnvIdSelection:
    """Envs by their ids `(m,)`."""

    def __init__(self, ids: NDArray[np.intp]):
        self.ids = self.host_ids = self.index = ids
        self.any = len(ids) > 0

    def take(self, array: Any) -> Any:
        """Return `array[ids]`."""
        return array[self.ids]

    def put(self, array: Any, values: Any) -> None:
        """Set `array[ids] = values`."""
        array[self.ids] = values

    def joined(self, others: EnvSelection) -> EnvIdSelection:
        """Return these envs and others."""
        return EnvIdSelection(np.union1d(self.ids, others.host_ids))

    def without(self, others: NDArray[np.bool_]) -> EnvIdSelection:
        """Return the envs that are not in a mask of the host."""
        return EnvIdSelection(self.ids[~others[self.ids]])

    def masked_writes(self) -> AbstractContextManager[None]:
        """Do nothing: setters are passed the ids."""
        return nullcontext()


class EnvMaskSelection:
    """Envs by a mask on the device, bool `(n,)`."""

    any = True

    def __init__(self, world: DeviceWorld, mask: Any):
        self._world = world
        self.index = mask
        self.ids = world.arrays.arange(world.env_num)

    @property
    def host_ids(self) -> NDArray[np.intp]:
        """Env ids; the host waits."""
        return np.flatnonzero(to_host(self.index))

    def take(self, array: Any) -> Any:
        """Return the array as it is: rows of other envs do not count."""
        return array

    def put(self, array: Any, values: Any) -> None:
        """Set `array[mask] = values`, values being `(n, ...)` or a number."""
        masked_assign(array, self.index, values)

    def joined(self, others: EnvSelection) -> EnvMaskSelection:
        """Return these envs and others, of a mask, too."""
        return EnvMaskSelection(self._world, self.index | others.index)

    def without(self, others: Any) -> EnvMaskSelection:
        """Return the envs that are not in a mask of the host or the device."""
        return EnvMaskSelection(self._world, self.index & ~self._world.arrays.asarray(others))

    def masked_writes(self) -> AbstractContextManager[None]:
        """Return a context in which setters change these envs only."""
        return self._world.masked_writes(self.index)


def select_envs(world: World, mask: Any) -> EnvSelection:
    """Return the envs of a mask, bool `(n,)`, of the kind that the world's arrays are."""
    return EnvMaskSelection(world, mask) if isinstance(world, DeviceWorld) else EnvIdSelection(mask.nonzero()[0])
