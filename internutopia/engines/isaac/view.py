"""View base on Isaac Sim: what the batched views of robots, bodies and cameras share.

Isaac Sim's handles have a row for each prim that they found; views have a row for each env. A handle lasts as long as
the stage: `EnvHandle` makes it anew after the stage has changed, and maps its rows to envs. Of
its world a view sees `IsaacContext` only.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.engines.isaac.api import BodyHandle, IsaacSim, PrimHandle
from internutopia.engines.isaac.env_prims import EnvPrims, env_path
from internutopia.engines.views import Array, EnvIds
from internutopia.model.compiled import CompiledScene
from internutopia.util.rotations import quat_rotate

Handle = TypeVar('Handle', bound=PrimHandle)
Paths = Callable[[EnvPrims], tuple[str, ...] | None]


class IsaacContext(Protocol):
    """The part of an `IsaacWorld` that its views need."""

    env_num: int
    env_origins: NDArray[np.float64]
    dt: float
    version: int
    sim: IsaacSim
    stage: int
    env_prims: dict[int, EnvPrims]
    dirty: NDArray[np.bool_]

    @property
    def running(self) -> Mapping[int, EnvPrims]:
        """Prims of the envs that run a scene."""
        ...

    def compiled(self, env_id: int) -> CompiledScene:
        """Return the host's model of the scene that an env runs. ValueError if it runs none."""
        ...

    def host_data(self, env_id: int) -> mujoco.MjData:
        """Return the host's model of an env in the env's state, with poses and velocities of all bodies."""
        ...


class EnvHandle(Generic[Handle]):
    """A handle over the k prims that `find` names in every env that has them, by their paths below the env."""

    def __init__(self, world: IsaacContext, find: Paths, make: Callable[[list[str]], Handle]):
        self._world = world
        self._find = find
        self._make = make
        self._stage = -1  # that the handle is of
        self._handle: Handle | None = None
        self._rows: NDArray[np.intp] = np.zeros((0, 0), np.intp)

    @property
    def handle(self) -> Handle:
        """The handle on the stage that there is now."""
        self._update()
        assert self._handle is not None
        return self._handle

    @property
    def rows(self) -> NDArray[np.intp]:
        """Rows of the handle by env, `(env_num, k)`; -1 for envs that have no such prims."""
        self._update()
        return self._rows

    @property
    def envs(self) -> EnvIds:
        """The envs that have such prims."""
        return np.flatnonzero(self.rows[:, 0] >= 0)

    def rows_of(self, env_ids: EnvIds) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """Return which of some envs have such prims, bool, and the rows of those, `(n, k)`."""
        rows = self.rows[env_ids]
        held = rows[:, 0] >= 0
        return held, rows[held]

    def scatter(self, target: Array, values: NDArray[Any]) -> None:
        """Write values `(rows, ...)` into the rows of the envs in `target`, `(env_num, k, ...)`."""
        target[self.envs] = values[self.rows[self.envs]]

    def _update(self) -> None:
        if self._stage == self._world.stage:
            return
        self._stage = self._world.stage
        places: dict[str, tuple[int, int]] = {}
        count = 1
        for env_id, prims in self._world.env_prims.items():
            paths = self._find(prims)
            if paths is not None:
                count = len(paths)
                places.update({env_path(env_id) + path: (env_id, k) for k, path in enumerate(paths)})
        self._rows = np.full((self._world.env_num, count), -1, np.intp)
        if not places:
            self._handle = None
            return
        self._handle = self._make(list(places))
        for row, path in enumerate(self._handle.paths):
            while path not in places:  # an articulation is found at a prim below the one that was named
                path = path.rpartition('/')[0]
            self._rows[places[path]] = row


class IsaacView:
    """Cached buffers."""

    def __init__(self, world: IsaacContext):
        self._world = world
        self._buffers: dict[Hashable, tuple[int, tuple[Array, ...], tuple[Array, ...]]] = {}

    def _cached(
        self, key: Hashable, shapes: Sequence[tuple[int, ...]], fill: Callable[[tuple[Array, ...]], None]
    ) -> Any:
        """Return buffers `(env_num, *shape)` for `key`, filled once per state version; read-only for others."""
        version, arrays, shown = self._buffers.get(key, (-1, (), ()))
        if not arrays:
            arrays = tuple(np.zeros((self._world.env_num, *shape), np.float32) for shape in shapes)
            shown = tuple(array.view() for array in arrays)
            for array in shown:
                array.flags.writeable = False
        if version != self._world.version:
            if self._anywhere():
                fill(arrays)
            self._buffers[key] = self._world.version, arrays, shown
        return shown

    def _mark_dirty(self, env_ids: EnvIds) -> None:
        """Mark envs in which something was set: Isaac Sim moves links along at the next substep only."""
        self._world.dirty[env_ids] = True
        self._world.version += 1

    def _anywhere(self) -> bool:
        """Return whether any env holds the prims of the view."""
        return True


class Masses:
    """Masses of bodies, which start anew with each episode."""

    def __init__(self, bodies: EnvHandle[BodyHandle]):
        self._bodies = bodies
        self._first: dict[int, NDArray[np.float32]] = {}  # `(k,)` by env, where they were changed

    def get(self) -> NDArray[np.float32]:
        """Return the masses `(rows,)` [kg] of the handle."""
        return self._bodies.handle.masses()

    def set(self, env_ids: EnvIds, column: int, masses: Any) -> None:
        """Set the masses `(n,)` of the bodies in a column."""
        held, rows = self._bodies.rows_of(env_ids)
        if len(rows):
            now = self.get()
            for env_id, own in zip(env_ids[held].tolist(), rows, strict=True):
                self._first.setdefault(env_id, now[own])
            self._bodies.handle.scale_masses(np.broadcast_to(masses, len(env_ids))[held], rows[:, column])

    def reset(self, env_ids: EnvIds) -> None:
        """Undo what was changed in some envs."""
        changed = np.array([env_id for env_id in env_ids.tolist() if env_id in self._first], np.intp)
        if changed.size:
            first = np.concatenate([self._first.pop(env_id) for env_id in changed.tolist()])
            self._bodies.handle.scale_masses(first, self._bodies.rows[changed].reshape(-1))

    def drop(self) -> None:
        """Drop all changes, for a new stage."""
        self._first.clear()


def velocity_at(
    velocities: tuple[NDArray[Any], NDArray[Any]], orientations: NDArray[Any], arm: NDArray[Any]
) -> NDArray[Any]:
    """Return the linear velocities at points that are `arm` [m], in body axes, away from where they were measured."""
    linear, angular = velocities
    return linear + np.cross(angular, quat_rotate(orientations, np.broadcast_to(arm, linear.shape)))
