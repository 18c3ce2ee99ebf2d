"""Isaac Sim interface: the calls that the world makes to Isaac Sim, whatever its version, in numpy arrays.

Arrays here are float32, their rows are those of a handle's `paths`, and poses are in the world frame, quaternions
`(w, x, y, z)`. Velocities are those of the centre of mass, as PhysX has them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import SimConfig
from internutopia.util.arrays import to_host

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]
Size = tuple[int, int]


@dataclass(frozen=True)
class Box:
    """A box that is no asset: `size` [m] along its edges, `color` from 0 to 1, `mass` [kg]."""

    size: tuple[float, float, float]
    color: tuple[float, float, float]
    dynamic: bool
    collider: bool
    mass: float


class PrimHandle:
    """Prims of some envs, behind a view of Isaac Sim.

    Args:
        view: the view.
        paths: prim paths of its rows.
        native: makes values arrays of the kind that the view takes.
        indices: does the same for rows.
    """

    _axes: Mapping[str, str] = {}  # further arguments of calls about poses

    def __init__(
        self,
        view: Any,
        paths: list[str],
        native: Callable[[Any], Any],
        indices: Callable[[Rows], Any] = lambda rows: rows,
    ):
        self._view = view
        self.paths = paths
        self._native = native
        self._indices = indices

    def poses(self) -> tuple[Floats, Floats]:
        """Return the positions `(n, 3)` [m] and orientations `(n, 4)`."""
        positions, orientations = self._view.get_world_poses(**self._axes)
        return host(positions), host(orientations)

    def set_poses(self, positions: Any, orientations: Any, rows: Rows) -> None:
        """Move the prims of some rows."""
        self._view.set_world_poses(
            positions=self._native(positions),
            orientations=self._native(orientations),
            indices=self._indices(rows),
            **self._axes,
        )


class MovingHandle(PrimHandle, ABC):
    """Prims that have velocities: linear [m/s], of the centre of mass, and angular [rad/s], `(n, 3)` each."""

    @abstractmethod
    def velocities(self) -> tuple[Floats, Floats]:
        """Return the velocities."""

    @abstractmethod
    def set_velocities(self, linear: Any, angular: Any, rows: Rows) -> None:
        """Set the velocities of some rows."""


class BodyHandle(MovingHandle):
    """Rigid bodies."""

    def masses(self) -> Floats:
        """Return the masses `(n,)` [kg]."""
        return host(self._view.get_masses()).reshape(-1)

    @abstractmethod
    def scale_masses(self, masses: Any, rows: Rows) -> None:
        """Set the masses `(k,)` of some rows; their inertias scale along."""

    def contact_forces(self, dt: float) -> Floats:
        """Return the net contact forces `(n, 3)` [N] of a step of length `dt`; for bodies made with `contacts` only."""
        return host(self._view.get_net_contact_forces(dt=dt))


class ArticulationHandle(MovingHandle):
    """Articulations of equal structure, with the velocities of their roots; joints in Isaac Sim's order."""

    @property
    def joint_names(self) -> list[str]:
        """Names of the joints that have a position."""
        return list(self._view.dof_names)

    @abstractmethod
    def joint_positions(self) -> Floats:
        """Return joint positions `(n, dof)` [rad or m]."""

    @abstractmethod
    def joint_velocities(self) -> Floats:
        """Return joint velocities `(n, dof)` [rad/s or m/s]."""

    @abstractmethod
    def joint_efforts(self) -> Floats:
        """Return the efforts measured along the joints' axes `(n, dof)` [N·m or N]."""

    @abstractmethod
    def set_joint_positions(self, values: Any, rows: Rows) -> None:
        """Set joint positions; position targets follow."""

    @abstractmethod
    def set_joint_velocities(self, values: Any, rows: Rows) -> None:
        """Set joint velocities; velocity targets follow."""

    @abstractmethod
    def set_targets(self, kind: str, values: Any, rows: Rows) -> None:
        """Set targets of a kind: `'position'`, `'velocity'` or `'effort'`."""

    @abstractmethod
    def set_gains(self, stiffness: Any, damping: Any, rows: Rows) -> None:
        """Set the gains of the drives."""

    @abstractmethod
    def set_self_collisions(self, enabled: bool, rows: Rows) -> None:
        """Let links of an articulation collide with each other, or not."""

    @abstractmethod
    def disable_gravity(self) -> None:
        """Disable gravity on all links."""


class CameraHandle(PrimHandle):
    """Cameras, which point along their -z axis, +y is up in the picture. `sensor` has one picture of all of them."""

    def __init__(self, sensor: Any, *args: Any):
        super().__init__(*args)
        self._sensor = sensor

    def picture(self, annotator: str) -> NDArray[Any] | None:
        """Return `(n, height, width, channels)` of the last frame that was rendered; None or empty before the first."""
        data, _ = self._sensor.get_data(annotator)
        return None if data is None else data.numpy()


class IsaacSim(ABC):
    """A stage with physics. One exists at a time."""

    @property
    @abstractmethod
    def physics_scene(self) -> str:
        """Prim path of the physics scene."""

    @abstractmethod
    def new_stage(self) -> None:
        """Start over with an empty stage."""

    @abstractmethod
    def add_frame(self, path: str, position: Any, orientation: Any = None, scale: Any = None) -> None:
        """Add a prim that places what is below it, relative to its parent."""

    @abstractmethod
    def add_asset(self, file: str, path: str) -> None:
        """Add a reference to a USD file."""

    @abstractmethod
    def add_body(self, path: str, mass: float | None, density: float | None) -> None:
        """Make a prim a rigid body, if it is none, of some mass [kg] or density [kg/m3]; None: the asset's own."""

    @abstractmethod
    def add_camera(self, path: str, position: Any, orientation: Any, fovy: float) -> None:
        """Add a camera, relative to its parent, with a vertical field of view [degrees]."""

    @abstractmethod
    def add_box(self, path: str, box: Box) -> None:
        """Add a box."""

    @abstractmethod
    def start(self) -> None:
        """Start physics with the prims on the stage."""

    @abstractmethod
    def step(self) -> None:
        """Make one substep without rendering."""

    @abstractmethod
    def render(self) -> None:
        """Render what cameras and windows show; physics stands still."""

    @abstractmethod
    def articulations(self, paths: Sequence[str]) -> ArticulationHandle:
        """Return the articulations at or below some prims."""

    @abstractmethod
    def bodies(self, paths: Sequence[str], *, contacts: bool = False) -> BodyHandle:
        """Return rigid bodies; with `contacts`, their contact forces are measured, and `start` has to come later."""

    @abstractmethod
    def prims(self, paths: Sequence[str]) -> PrimHandle:
        """Return prims that do not move under physics."""

    @abstractmethod
    def cameras(self, paths: Sequence[str], size: Size, annotators: Sequence[str], *, added: bool) -> CameraHandle:
        """Return cameras whose pictures have `size` (width, height) [pixels].

        Those of assets show the whole width of their film; those that were `added` their whole vertical field of view.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the stage; the app keeps running."""

    def __init__(self, names: SimpleNamespace, load_camera_class: Callable[[], Any], dt: float, config: SimConfig):
        self.names = names
        self.load_camera_class = load_camera_class  # called late: its extension may come after the others
        self.dt = dt
        self.config = config

    def clone(self, source: str, paths: Sequence[str], offsets: NDArray[np.float64], replicate: bool) -> None:
        """Make envs like the one at `source`, which is among `paths`, and put each at its offset `(n, 3)` [m].

        With `replicate`, physics is parsed once and copied; then paths are `/World/env_0` and so on without a gap, and
        nothing else on the stage takes part in physics.
        """
        cloner = self.names.GridCloner(spacing=0.0)  # a grid of one point: what counts are the offsets
        cloner.clone(
            source_prim_path=source,
            prim_paths=list(paths),
            position_offsets=offsets,
            replicate_physics=replicate,
            base_env_path='/World',
            root_path='/World/env_',
            copy_from_source=True,
        )

    def isolate(self, paths: Sequence[str]) -> None:
        """Disable collisions between envs."""
        cloner = self.names.GridCloner(spacing=0.0)
        cloner.filter_collisions(
            physicsscene_path=self.physics_scene,
            collision_root_path='/collisionGroups',  # outside of what is left to replication
            prim_paths=list(paths),
            global_paths=[],
        )


def host(values: Any) -> Floats:
    """Return an array of numpy, torch or Warp on the host."""
    values = to_host(values)
    return np.asarray(values if isinstance(values, np.ndarray) else values.numpy(), np.float32)
