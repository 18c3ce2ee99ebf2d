"""Body views on Isaac Sim, batched: objects and movable scene bodies."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.isaac.api import BodyHandle, PrimHandle
from internutopia.engines.isaac.env_prims import EnvPrims, InitialState
from internutopia.engines.isaac.view import EnvHandle, IsaacContext, IsaacView, Masses, velocity_at
from internutopia.engines.setter_checks import check_finite, check_orientations
from internutopia.engines.views import Array, BodyView, EnvIds


def kind_of(prims: EnvPrims, name: str) -> str:
    """Return how a body moves: `'static'` for an object that stays, `'free'`, `'jointed'`, or `'kinematic'`."""
    body = prims.compiled.bodies[name]
    if body.mocap >= 0:
        return 'static' if name in dict(prims.objects) else 'kinematic'
    return 'free' if body.qpos >= 0 else 'jointed'


class IsaacBodyView(IsaacView, BodyView):
    """A body; `kind` as `kind_of` returns it."""

    def __init__(self, world: IsaacContext, name: str, kind: str):
        super().__init__(world)
        self.name = name
        self.kind = kind
        make = world.sim.prims if kind == 'static' else world.sim.bodies
        self._by_env: EnvHandle[PrimHandle] = EnvHandle(world, self._find, make)
        self._found = -1, np.zeros((0, 3))  # centres of mass, on a stage
        self.masses = Masses(cast('EnvHandle[BodyHandle]', self._by_env))

    @override
    def get_poses(self) -> tuple[Array, Array]:
        return self._cached('pose', ((3,), (4,)), self._fill_poses)

    @override
    def get_velocities(self) -> tuple[Array, Array]:
        return self._cached('velocity', ((3,), (3,)), self._fill_velocities)

    @override
    def get_masses(self) -> Array:
        def fill(buffers: tuple[Array, ...]) -> None:
            if self.kind != 'static':
                self._by_env.scatter(buffers[0][:, None], self.masses.get())
            else:  # Isaac Sim gives no mass to what cannot move
                for env_id in self._by_env.envs.tolist():
                    compiled = self._world.env_prims[env_id].compiled
                    buffers[0][env_id] = compiled.model.body_mass[compiled.bodies[self.name].body]

        return self._cached('mass', ((),), fill)[0]

    @override
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        check_finite(env_ids, self.name, 'position', positions)
        check_orientations(env_ids, self.name, orientations)
        if self.kind == 'jointed':
            raise ValueError(f'body {self.name!r} hangs on other bodies: only free or fixed root bodies can be posed')
        self._move(env_ids, positions, orientations)

    @override
    def set_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        check_finite(env_ids, self.name, 'linear velocity', linear)
        check_finite(env_ids, self.name, 'angular velocity', angular)
        if self.kind != 'free':
            raise ValueError(f'body {self.name!r} does not move freely: its velocity cannot be set')
        held, rows = self._by_env.rows_of(env_ids)
        if not len(rows):
            return
        own = env_ids[held]
        now = self.get_velocities()
        linear, angular = (
            before[own] if new is None else np.asarray(new)[held]
            for new, before in zip((linear, angular), now, strict=True)
        )
        linear = velocity_at((linear, angular), self.get_poses()[1][own], self._centres()[own])
        self._bodies.set_velocities(linear, angular, rows[:, 0])
        self._world.version += 1

    @override
    def set_masses(self, env_ids: EnvIds, masses: Any) -> None:
        if self.kind == 'static':
            raise ValueError(f'object {self.name!r} does not move: Isaac Sim gives it no mass')
        self.masses.set(env_ids, 0, masses)
        self._world.version += 1

    def reset(self, env_ids: EnvIds, initial_states: list[InitialState]) -> None:
        """Start episodes at rest."""
        self.masses.reset(env_ids)
        bodies = [initial.prims.compiled.bodies[self.name].body for initial in initial_states]
        positions, orientations = (
            np.stack([getattr(initial.data, field)[body] for initial, body in zip(initial_states, bodies, strict=True)])
            for field in ('xpos', 'xquat')
        )
        self._move(env_ids, positions, orientations)
        if self.kind in ('free', 'jointed'):
            _, rows = self._by_env.rows_of(env_ids)
            zero = np.zeros((len(rows), 3), np.float32)
            self._bodies.set_velocities(zero, zero, rows[:, 0])
            self._world.version += 1

    def get_state(self, env_ids: EnvIds) -> dict[str, NDArray[np.float32]]:
        """Return the state of some envs, which all have the body; a copy."""
        values = {'position': self.get_poses()[0], 'orientation': self.get_poses()[1]}
        if self.kind != 'static':
            values |= {'linear': self.get_velocities()[0], 'angular': self.get_velocities()[1]}
            values['mass'] = self.get_masses()
        return {name: array[env_ids] for name, array in values.items()}

    def set_state(self, env_ids: EnvIds, state: dict[str, NDArray[np.float32]]) -> None:
        """Give some envs a state that `get_state` returned for them, or for others like them."""
        self._move(env_ids, state['position'], state['orientation'])
        if self.kind == 'static':
            return
        if not np.array_equal(self.get_masses()[env_ids], state['mass']):
            self.set_masses(env_ids, state['mass'])
        if self.kind == 'free':
            self.set_velocities(env_ids, state['linear'], state['angular'])

    def holds(self, prims: EnvPrims) -> bool:
        """Return whether an env with these prims has the body."""
        return self.name in prims.compiled.bodies and kind_of(prims, self.name) == self.kind

    @override
    def _anywhere(self) -> bool:
        return bool(self._by_env.envs.size)

    @property
    def _bodies(self) -> BodyHandle:
        return cast(BodyHandle, self._by_env.handle)

    def _find(self, prims: EnvPrims) -> tuple[str, ...] | None:
        return (prims.body(self.name),) if self.holds(prims) else None

    def _centres(self) -> NDArray[np.float64]:
        """Return the centres of mass in the frames of the bodies, by env `(env_num, 3)` [m]."""
        stage, centres = self._found
        if stage != self._world.stage:
            centres = np.zeros((self._world.env_num, 3))
            for env_id in self._by_env.envs.tolist():
                compiled = self._world.env_prims[env_id].compiled
                centres[env_id] = compiled.model.body_ipos[compiled.bodies[self.name].body]
            self._found = self._world.stage, centres
        return centres

    def _move(self, env_ids: EnvIds, positions: Any, orientations: Any) -> None:
        held, rows = self._by_env.rows_of(env_ids)
        if not len(rows):
            return
        own = env_ids[held]
        now = self.get_poses()
        position = now[0][own] if positions is None else np.asarray(positions)[held]
        orientation = now[1][own] if orientations is None else np.asarray(orientations, np.float64)[held]
        orientation = orientation / np.linalg.norm(orientation, axis=-1, keepdims=True)
        self._by_env.handle.set_poses(position + self._world.env_origins[own], orientation, rows[:, 0])
        self._world.version += 1

    def _fill_poses(self, buffers: tuple[Array, ...]) -> None:
        for buffer, values in zip(buffers, self._by_env.handle.poses(), strict=True):
            self._by_env.scatter(buffer[:, None], values)
        envs = self._by_env.envs
        buffers[0][envs] -= self._world.env_origins[envs].astype(np.float32)

    def _fill_velocities(self, buffers: tuple[Array, ...]) -> None:
        if self.kind == 'static':
            return
        for buffer, values in zip(buffers, self._bodies.velocities(), strict=True):
            self._by_env.scatter(buffer[:, None], values)
        envs = self._by_env.envs
        now = buffers[0][envs], buffers[1][envs]
        buffers[0][envs] = velocity_at(now, self.get_poses()[1][envs], -self._centres()[envs])
