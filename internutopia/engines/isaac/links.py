"""Link views of a robot on Isaac Sim: poses, velocities, masses, contact forces.

Isaac Sim moves links along with joints and roots at the next substep only. Until then, in the envs where something was
set, links are where the host's model of the robot has them.
"""

from __future__ import annotations

import functools
from typing import Any, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.engines.isaac.api import BodyHandle
from internutopia.engines.isaac.env_prims import EnvPrims
from internutopia.engines.isaac.view import EnvHandle, IsaacContext, IsaacView, Masses, velocity_at
from internutopia.engines.views import Array, BodyView, EnvIds
from internutopia.util import did_you_mean
from internutopia.util.rotations import quat_rotate

Links = tuple[str, ...]


class LinkedRobot(Protocol):
    """The part of a robot's view that its links need."""

    name: str
    body_names: tuple[str, ...]
    contact_links: tuple[str, ...]

    def holds(self, prims: EnvPrims) -> bool:
        """Return whether an env with these prims has the robot."""
        ...

    def set_root_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        """Teleport the root, `(n, 3)` and `(n, 4)`."""
        ...

    def set_root_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        """Set root velocities, `(n, 3)` each."""
        ...


class IsaacLinks(IsaacView):
    """All links of a robot: those of its asset as rigid bodies, and frames that are fixed to one of them."""

    def __init__(self, world: IsaacContext, robot: LinkedRobot, prims: EnvPrims):
        super().__init__(world)
        self.robot = robot
        self._layout = prims.compiled.robots[robot.name]
        self._model = prims.compiled.model
        self.own = tuple(prims.links(robot.name))  # those that are prims
        self._by_env: EnvHandle[BodyHandle] = EnvHandle(world, self._find, world.sim.bodies)
        self._contacts: EnvHandle[BodyHandle] = EnvHandle(
            world, self._find_contacts, functools.partial(world.sim.bodies, contacts=True)
        )
        self.masses = Masses(self._by_env)
        self._bodies: dict[str, IsaacLinkView] = {}

    def poses(self, links: Links) -> tuple[Array, Array]:
        """Return the positions `(env_num, k, 3)` and orientations `(env_num, k, 4)`. KeyError with close matches."""
        self._check(links)

        def fill(buffers: tuple[Array, ...]) -> None:
            columns, offsets = self._columns(links)
            positions, orientations = self._native('pose', lambda handle: handle.poses(), (3, 4))
            buffers[1][:] = orientations[:, columns]
            buffers[0][:] = positions[:, columns] + quat_rotate(buffers[1], offsets)
            buffers[0][:] -= self._world.env_origins[:, None]
            self._correct(buffers, links, lambda data, body: (data.xpos[body], data.xquat[body]))

        return self._cached(('pose', links), ((len(links), 3), (len(links), 4)), fill)

    def velocities(self, links: Links) -> tuple[Array, Array]:
        """Return linear and angular velocities of the links' frames `(env_num, k, 3)`. KeyError with close matches."""
        self._check(links)

        def fill(buffers: tuple[Array, ...]) -> None:
            columns, offsets = self._columns(links)
            linear, angular = self._native('velocity', lambda handle: handle.velocities(), (3, 3))
            orientations = self._native('pose', lambda handle: handle.poses(), (3, 4))[1][:, columns]
            centres = self._model.body_ipos[[self._layout.bodies[self.own[column]].body for column in columns]]
            buffers[1][:] = angular[:, columns]
            buffers[0][:] = velocity_at((linear[:, columns], buffers[1]), orientations, offsets - centres)
            self._correct(buffers, links, self._host_velocity)

        return self._cached(('velocity', links), ((len(links), 3), (len(links), 3)), fill)

    def contact_forces(self) -> Array:
        """Return the net contact forces `(env_num, k, 3)` [N] on the robot's contact links."""

        def fill(buffers: tuple[Array, ...]) -> None:
            self._contacts.scatter(buffers[0], self._contacts.handle.contact_forces(self._world.dt))

        return self._cached('contact', ((len(self.robot.contact_links), 3),), fill)[0]

    def prepare_contacts(self) -> None:
        """Enable the measurement of contact forces; to be called when prims are on the stage, before physics starts."""
        if self.robot.contact_links:
            _ = self._contacts.rows

    def all_masses(self) -> NDArray[np.float32]:
        """Return the masses `(env_num, links)` [kg] of the links that are prims."""
        values = np.zeros((self._world.env_num, len(self.own)), np.float32)
        self._by_env.scatter(values, self.masses.get())
        return values

    def set_all_masses(self, env_ids: EnvIds, masses: NDArray[Any]) -> None:
        """Set masses `(n, links)` [kg]."""
        changed = (self.all_masses()[env_ids] != masses).any(axis=0)
        for column in np.flatnonzero(changed).tolist():
            self.masses.set(env_ids, column, masses[:, column])

    def set_mass(self, env_ids: EnvIds, link: str, masses: Any) -> None:
        """Set the masses `(n,)` [kg] of a link. ValueError for a frame, which has none."""
        if link not in self.own:
            raise ValueError(f'link {link!r} of robot {self.robot.name!r} is a frame: it has no mass')
        self.masses.set(np.asarray(env_ids, np.intp), self.own.index(link), masses)
        self._world.version += 1

    def body(self, name: str) -> IsaacLinkView:
        """Return a view of one link. KeyError with close matches."""
        self._check((name,))
        if name not in self._bodies:
            self._bodies[name] = IsaacLinkView(self, name)
        return self._bodies[name]

    def is_root(self, name: str) -> bool:
        """Return whether a link is the root of a robot that moves freely."""
        return self._layout.bodies[name].qpos >= 0

    @override
    def _anywhere(self) -> bool:
        return bool(self._by_env.envs.size)

    def _find(self, prims: EnvPrims) -> tuple[str, ...] | None:
        return tuple(prims.links(self.robot.name).values()) if self.robot.holds(prims) else None

    def _find_contacts(self, prims: EnvPrims) -> tuple[str, ...] | None:
        if not self.robot.holds(prims):
            return None
        links = prims.links(self.robot.name)
        return tuple(links[name] for name in self.robot.contact_links)

    def _check(self, links: Links) -> None:
        for name in links:
            if name not in self._layout.bodies:
                similar = did_you_mean(name, self.robot.body_names)
                raise KeyError(f'robot {self.robot.name!r} has no link {name!r}; {similar}')

    def _columns(self, links: Links) -> tuple[list[int], NDArray[np.float64]]:
        """Return the prims that links are fixed to, and where they are on those `(k, 3)` [m]."""
        columns: list[int] = []
        offsets = np.zeros((len(links), 3))
        for k, name in enumerate(links):
            body = self._layout.bodies[name].body
            if name not in self.own:
                offsets[k] = self._model.body_pos[body]
                body = int(self._model.body_parentid[body])
            columns.append(next(c for c, own in enumerate(self.own) if self._layout.bodies[own].body == body))
        return columns, offsets

    def _native(self, key: str, read: Any, sizes: tuple[int, int]) -> tuple[Array, Array]:
        """Return the handle's values of all links `(env_num, links, size)` each, world frame."""

        def fill(buffers: tuple[Array, ...]) -> None:
            for buffer, values in zip(buffers, read(self._by_env.handle), strict=True):
                self._by_env.scatter(buffer, values)

        return self._cached(key, [(len(self.own), size) for size in sizes], fill)

    def _correct(self, buffers: tuple[Array, ...], links: Links, read: Any) -> None:
        """Write the values of the host's model in envs where something was set."""
        for env_id in np.intersect1d(self._by_env.envs, np.flatnonzero(self._world.dirty)).tolist():
            data = self._world.host_data(env_id)
            bodies = self._world.compiled(env_id).robots[self.robot.name].bodies
            for k, name in enumerate(links):
                for buffer, values in zip(buffers, read(data, bodies[name].body), strict=True):
                    buffer[env_id, k] = values

    def _host_velocity(self, data: mujoco.MjData, body: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(data.model, data, mujoco.mjtObj.mjOBJ_XBODY, body, velocity, 0)
        return velocity[3:], velocity[:3]


class IsaacLinkView(BodyView):
    """One link."""

    def __init__(self, links: IsaacLinks, name: str):
        self.name = name
        self._links = links

    @override
    def get_poses(self) -> tuple[Array, Array]:
        positions, orientations = self._links.poses((self.name,))
        return positions[:, 0], orientations[:, 0]

    @override
    def get_velocities(self) -> tuple[Array, Array]:
        linear, angular = self._links.velocities((self.name,))
        return linear[:, 0], angular[:, 0]

    @override
    def get_masses(self) -> Array:
        masses = self._links.all_masses()
        if self.name not in self._links.own:
            return np.zeros(len(masses), np.float32)
        return masses[:, self._links.own.index(self.name)]

    @override
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        self._root().set_root_poses(env_ids, positions, orientations)

    @override
    def set_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        self._root().set_root_velocities(env_ids, linear, angular)

    @override
    def set_masses(self, env_ids: EnvIds, masses: Any) -> None:
        self._links.set_mass(env_ids, self.name, masses)

    def _root(self) -> LinkedRobot:
        if not self._links.is_root(self.name):
            raise ValueError(
                f'body {self.name!r} hangs on other bodies: only free or fixed root bodies can be posed and moved'
            )
        return self._links.robot
