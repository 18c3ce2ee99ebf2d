"""Views of `isaacsim.core.prims`: several prims at once, those of a pattern of prim paths; a row for each.

`/World/env_.*/robots/h1` is a view over all envs, its rows in the order of `prim_paths`. All arrays are numpy's;
`indices` are rows, None for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from internutopia.compat.numbers import checks_arguments
from internutopia.compat.omni.handles import (
    Ready,
    SingleArticulation,
    SingleGeometryPrim,
    SingleRigidPrim,
    SingleXFormPrim,
    joints_state,
)
from internutopia.compat.omni.prims import find_matching_prim_paths
from internutopia.util import did_you_mean

SINGLE_NAMES = {  # in Isaac Sim up to 4.2, a name is that of one prim
    'XFormPrim': 'SingleXFormPrim',
    'RigidPrim': 'SingleRigidPrim',
    'GeometryPrim': 'SingleGeometryPrim',
    'XFormPrimView': 'XFormPrim',
    'RigidPrimView': 'RigidPrim',
    'GeometryPrimView': 'GeometryPrim',
}
"""Names of `omni.isaac.core.prims`, and what they are here."""
ARTICULATIONS = {'Articulation': 'SingleArticulation', 'ArticulationView': 'Articulation'}
"""Names of `omni.isaac.core.articulations`, and what they are here."""
ROBOTS = {'Robot': 'SingleArticulation', 'RobotView': 'Articulation'}
"""Names of `omni.isaac.core.robots`, and what they are here."""
VIEWS = (
    *('Articulation', 'GeometryPrim', 'RigidPrim', 'XFormPrim'),
    *('SingleArticulation', 'SingleGeometryPrim', 'SingleRigidPrim', 'SingleXFormPrim'),
)
"""Names of `isaacsim.core.prims`."""

Array = NDArray[Any]
S = TypeVar('S', bound=SingleXFormPrim)
T = TypeVar('T')


class _View(Ready, Generic[S]):
    """Handles of the prims whose paths match one or several patterns.

    Args:
        prim_paths_expr: pattern or patterns of prim paths. ValueError if nothing matches one.
        name: its name.
        positions: where to put the prims, world frame [m] `(n, 3)`.
        translations: the same relative to their parents.
        orientations: `(n, 4)`.
        **options: accepted.
    """

    single: type[Any] = SingleXFormPrim

    @checks_arguments
    def __init__(
        self,
        prim_paths_expr: str | Sequence[str],
        name: str = 'view',
        positions: Any = None,
        translations: Any = None,
        orientations: Any = None,
        **options: Any,
    ):
        self.name = name
        self.prim_paths: list[str] = []
        for pattern in [prim_paths_expr] if isinstance(prim_paths_expr, str) else prim_paths_expr:
            paths = find_matching_prim_paths(pattern)
            if not paths:
                raise ValueError(f'no prim path matches {pattern!r}')
            self.prim_paths += paths
        self._prims: list[S] = [self.single(path, name=path) for path in self.prim_paths]
        if translations is not None:
            self.set_local_poses(translations, orientations)
        elif positions is not None or orientations is not None:
            self.set_world_poses(positions, orientations)

    @property
    def count(self) -> int:
        """Number of prims."""
        return len(self._prims)

    @property
    def prims(self) -> list[Any]:
        """The prims on the stage."""
        return [each.prim for each in self._prims]

    @property
    def initialized(self) -> bool:
        """True: handles are ready when they are made."""
        return True

    def is_valid(self, indices: Any = None) -> bool:
        """Return True if all the prims are still there."""
        return all(each.is_valid() for each in self._chosen(indices))

    def is_physics_handle_valid(self) -> bool:
        """Return True if all the prims are still there."""
        return self.is_valid()

    def get_world_poses(self, indices: Any = None, clone: bool = True, usd: bool = True) -> tuple[Array, Array]:
        """Return positions `(m, 3)` [m] and orientations `(m, 4)` in the world."""
        positions, orientations = zip(*(each.get_world_pose() for each in self._chosen(indices)), strict=True)
        return np.array(positions), np.array(orientations)

    def set_world_poses(
        self, positions: Any = None, orientations: Any = None, indices: Any = None, usd: bool = True
    ) -> None:
        """Move the prims, `(m, 3)` and `(m, 4)` in the world; None leaves one as it is."""
        self._each('set_world_pose', indices, positions, orientations)

    def get_local_poses(self, indices: Any = None) -> tuple[Array, Array]:
        """Return positions `(m, 3)` and orientations `(m, 4)` in the frames of the parents."""
        positions, orientations = zip(*(each.get_local_pose() for each in self._chosen(indices)), strict=True)
        return np.array(positions), np.array(orientations)

    def set_local_poses(self, translations: Any = None, orientations: Any = None, indices: Any = None) -> None:
        """Move the prims in the frames of their parents."""
        self._each('set_local_pose', indices, translations, orientations)

    def _chosen(self, indices: Any) -> list[S]:
        if indices is None:
            return self._prims
        rows = np.asarray(indices)
        if rows.size and not (rows.dtype.kind in 'iu' and 0 <= rows.min() <= rows.max() < self.count):
            raise ValueError(f'{self.name}: indices must be rows of its {self.count} prims, got {indices!r}')
        return [self._prims[row] for row in rows.tolist()]

    def _each(self, call: str, indices: Any, *values: Any, **options: Any) -> None:
        """Call a setter of each prim with its row of values. ValueError if there are not as many rows as prims."""
        chosen = self._chosen(indices)
        for value in values:
            if value is not None and (np.ndim(value) == 0 or len(value) != len(chosen)):
                got = f'{len(value)} rows' if np.ndim(value) else f'{value!r}'
                raise ValueError(f'{self.name}.{call}: {got} for {len(chosen)} prims')
        for row, each in enumerate(chosen):
            getattr(each, call)(*(None if value is None else value[row] for value in values), **options)

    def _rows(self, call: str, indices: Any) -> Array:
        return np.array([getattr(each, call)() for each in self._chosen(indices)])


class XFormPrim(_View[SingleXFormPrim]):
    """Prims: bodies of physics, and others of the stage."""


class GeometryPrim(XFormPrim):
    """Prims with shapes."""

    single = SingleGeometryPrim


class _Moving(_View[S]):
    """Prims with velocities."""

    def get_linear_velocities(self, indices: Any = None, clone: bool = True) -> Array:
        """Return velocities `(m, 3)` [m/s]."""
        return self._rows('get_linear_velocity', indices)

    def set_linear_velocities(self, velocities: Any, indices: Any = None) -> None:
        """Set velocities `(m, 3)` [m/s]."""
        self._each('set_linear_velocity', indices, velocities)

    def get_angular_velocities(self, indices: Any = None, clone: bool = True) -> Array:
        """Return angular velocities `(m, 3)` [rad/s]."""
        return self._rows('get_angular_velocity', indices)

    def set_angular_velocities(self, velocities: Any, indices: Any = None) -> None:
        """Set angular velocities `(m, 3)` [rad/s]."""
        self._each('set_angular_velocity', indices, velocities)

    def get_velocities(self, indices: Any = None, clone: bool = True) -> Array:
        """Return linear and angular velocities `(m, 6)`."""
        return np.concatenate([self.get_linear_velocities(indices), self.get_angular_velocities(indices)], axis=1)

    def set_velocities(self, velocities: Any, indices: Any = None) -> None:
        """Set linear and angular velocities `(m, 6)`."""
        rows = np.asarray(velocities, float)
        self.set_linear_velocities(rows[:, :3], indices)
        self.set_angular_velocities(rows[:, 3:], indices)


class RigidPrim(_Moving[SingleRigidPrim]):
    """Rigid bodies."""

    single = SingleRigidPrim

    def get_masses(self, indices: Any = None, clone: bool = True) -> Array:
        """Return masses `(m,)` [kg]."""
        return self._rows('get_mass', indices)

    def set_masses(self, masses: Any, indices: Any = None) -> None:
        """Set masses `(m,)` [kg]."""
        self._each('set_mass', indices, masses)


def _of_joints(call: Callable[..., T]) -> Callable[..., T]:
    """Let a method with `joint_indices` take `joint_names` instead. KeyError with close matches, ValueError if both."""

    @functools.wraps(call)
    def of_joints(self: Articulation, *args: Any, joint_names: Sequence[str] | None = None, **options: Any) -> T:
        if joint_names is not None:
            if options.get('joint_indices') is not None:
                raise ValueError(f'{self.name}.{call.__name__}: give joint_indices or joint_names, not both')
            options['joint_indices'] = [self.get_dof_index(joint) for joint in joint_names]
        return call(self, *args, **options)

    return of_joints


class Articulation(_Moving[SingleArticulation]):
    """Robots with the same joints. Joint arrays are `(m, k)`; `joint_indices` are dofs, None for all of them.

    Where there are `joint_indices`, there may be `joint_names`.
    """

    single = SingleArticulation

    @property
    def dof_names(self) -> list[str]:
        """Names of the joints."""
        return self._prims[0].dof_names

    @property
    def num_dof(self) -> int:
        """Number of joints."""
        return len(self.dof_names)

    @property
    def body_names(self) -> list[str]:
        """Names of the links."""
        return list(self._prims[0].view.body_names)

    @property
    def num_bodies(self) -> int:
        """Number of links."""
        return len(self.body_names)

    def get_dof_index(self, dof_name: str) -> int:
        """Return the index of a joint. KeyError with close matches."""
        return self._prims[0].get_dof_index(dof_name)

    def get_body_index(self, body_name: str) -> int:
        """Return the index of a link. KeyError with close matches."""
        if body_name not in self.body_names:
            raise KeyError(f'no link {body_name!r}; {did_you_mean(body_name, self.body_names)}')
        return self.body_names.index(body_name)

    get_link_index = get_body_index

    def get_joints_state(self) -> SimpleNamespace:
        """Return `positions`, `velocities` and `efforts` of the joints `(n, dof)`."""
        return joints_state(self)

    def get_dof_limits(self) -> Array:
        """Return joint limits `(n, dof, 2)` [rad or m]."""
        return np.array([each.view.joint_ranges for each in self._prims])

    @_of_joints
    def get_joint_positions(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Array:
        """Return joint positions `(m, k)` [rad or m]."""
        return np.array([each.get_joint_positions(joint_indices) for each in self._chosen(indices)])

    @_of_joints
    def get_joint_velocities(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Array:
        """Return joint velocities `(m, k)` [rad/s or m/s]."""
        return np.array([each.get_joint_velocities(joint_indices) for each in self._chosen(indices)])

    @_of_joints
    def get_measured_joint_efforts(self, indices: Any = None, joint_indices: Any = None, clone: bool = True) -> Array:
        """Return the forces of the drives `(m, k)` [N·m or N]."""
        return np.array([each.get_measured_joint_efforts(joint_indices) for each in self._chosen(indices)])

    @_of_joints
    def set_joint_positions(self, positions: Any, indices: Any = None, joint_indices: Any = None) -> None:
        """Set joint positions `(m, k)`; position targets follow."""
        self._each('set_joint_positions', indices, positions, joint_indices=joint_indices)

    @_of_joints
    def set_joint_velocities(self, velocities: Any, indices: Any = None, joint_indices: Any = None) -> None:
        """Set joint velocities `(m, k)`."""
        self._each('set_joint_velocities', indices, velocities, joint_indices=joint_indices)

    @_of_joints
    def set_joint_efforts(self, efforts: Any, indices: Any = None, joint_indices: Any = None) -> None:
        """Set effort targets `(m, k)` [N·m or N]."""
        self._each('set_joint_targets', indices, efforts, kind='joint_efforts', joint_indices=joint_indices)

    @_of_joints
    def set_joint_position_targets(self, positions: Any, indices: Any = None, joint_indices: Any = None) -> None:
        """Set position targets `(m, k)` of the drives."""
        self._each('set_joint_targets', indices, positions, kind='joint_positions', joint_indices=joint_indices)

    @_of_joints
    def set_joint_velocity_targets(self, velocities: Any, indices: Any = None, joint_indices: Any = None) -> None:
        """Set velocity targets `(m, k)` of the drives."""
        self._each('set_joint_targets', indices, velocities, kind='joint_velocities', joint_indices=joint_indices)

    @_of_joints
    def get_gains(self, indices: Any = None, joint_indices: Any = None) -> tuple[Array, Array]:
        """Return stiffness and damping of the drives `(m, k)`."""
        columns = slice(None) if joint_indices is None else np.asarray(joint_indices)
        stiffness, damping = zip(*(each.get_gains() for each in self._chosen(indices)), strict=True)
        return np.array(stiffness)[:, columns], np.array(damping)[:, columns]

    @_of_joints
    def set_gains(self, kps: Any = None, kds: Any = None, indices: Any = None, joint_indices: Any = None) -> None:
        """Set stiffness and damping of the drives `(m, k)`; None leaves one as it is."""
        self._each('set_gains', indices, kps, kds, joint_indices=joint_indices)
