"""Views: a body, camera or articulation of a physics world, in all envs that have it.

An array has shape `(env_num, ...)`, row = env id, float32; poses are in the frames of the envs. Rows of envs that do
not hold the articulation or body are meaningless. What a getter returns is a read-only buffer that belongs to the view
and is valid until the next `step`, `load` or setter: copy what you keep, write through the setters. Setters take values
for the rows `env_ids` only, `(len(env_ids), ...)`; other envs are not touched, not even by a bit. Poses, positions and
velocities that are not finite raise a ValueError; tensors of a device are not checked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.model.kinematics import KinematicChain
from internutopia.model.spec import Probe
from internutopia.rendering.camera import Frame, Intrinsics, PictureKind

Array = NDArray[np.float32]
# Which envs a setter is about: an index array of the host, one row of values for each. A `DeviceWorld` also takes the
# ids of all envs as a tensor, one row of values for every env: then those of the mask in force are changed, see
# `DeviceWorld.masked_writes`
EnvIds = NDArray[np.intp]

LARGEST_NUMBER = 1e10
"""Largest number that is passed to an engine; MuJoCo reports a state that has a larger one as diverged."""


class BodyView(ABC):
    """A rigid body (a link, an object, a movable part of the scene) in every env that has it."""

    name: str

    @abstractmethod
    def get_poses(self, env_ids: EnvIds | None = None) -> tuple[Array, Array]:
        """Return position `(env_num, 3)` [m] and orientation `(env_num, 4)` of the body frame, env frame.

        Of some envs, `(m, ...)`: faster for few of many, where those of all are not read anyway.
        """

    @abstractmethod
    def get_velocities(self, env_ids: EnvIds | None = None) -> tuple[Array, Array]:
        """Return linear velocity of the frame's origin [m/s] and angular velocity [rad/s], env axes.

        `(env_num, 3)`, or `(m, 3)` of some envs.
        """

    @abstractmethod
    def get_masses(self) -> Array:
        """Return the masses `(env_num,)` [kg]."""

    @abstractmethod
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        """Move the body; `(n, 3)` and `(n, 4)`, None leaves one as it is. ValueError for a link of an articulation."""

    @abstractmethod
    def set_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        """Set velocities, `(n, 3)` each, env axes. ValueError for a body that cannot move freely."""

    @abstractmethod
    def set_masses(self, env_ids: EnvIds, masses: Any) -> None:
        """Set masses `(n,)` [kg]; inertias scale along."""


Capture = Callable[[Sequence[int], Sequence[Frame]], None]
"""Renders images of envs, by id, as they were, into a frame each. NoOpenGLError if nothing can be rendered here."""


def copying(env_ids: EnvIds, taken: Mapping[PictureKind, NDArray[Any]]) -> Capture:
    """Return the capture of images that have been rendered, a row for each env."""
    rows = {env_id: row for row, env_id in enumerate(env_ids.tolist())}

    def copy(env_ids: Sequence[int], frames: Sequence[Frame]) -> None:
        for env_id, frame in zip(env_ids, frames, strict=True):
            for kind, picture in frame.pictures.items():
                picture[:] = taken[kind][rows[env_id]]

    return copy


class CameraView(ABC):
    """A camera in every env that has it; it points along its -z axis, +y is up in the image."""

    name: str

    @abstractmethod
    def get_poses(self) -> tuple[Array, Array]:
        """Return the position `(env_num, 3)` [m] and orientation `(env_num, 4)`, env frame."""

    @abstractmethod
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        """Move the camera on the link that carries it, where it stays until the episode ends; `(n, 3)`, `(n, 4)`."""

    @abstractmethod
    def get_mount_poses(self) -> tuple[Array, Array]:
        """Return the position `(env_num, 3)` [m] and orientation `(env_num, 4)` of the camera's mount, env frame."""

    @abstractmethod
    def intrinsics(self, env_id: int, size: tuple[int, int]) -> Intrinsics:
        """Return the projection of the camera onto images of `size` (width, height) [pixels]."""

    @abstractmethod
    def capture(self, env_ids: EnvIds, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Capture:
        """Keep what images of some envs of now are rendered from, also when these envs have changed.

        Some engines render them at once.
        """

    def render(self, env_ids: EnvIds, frames: Sequence[Frame]) -> None:
        """Render the image of each env into that env's frame. NoOpenGLError if nothing can be rendered here."""
        if frames:
            self.capture(env_ids, frames[0].size, tuple(frames[0].pictures))(env_ids.tolist(), frames)

    @abstractmethod
    def pictures(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Mapping[PictureKind, Any]:
        """Render the current images of all envs, `(env_num, ...)` of `size` (width, height) [pixels], see `Frame`.

        They are arrays of the kind that `World.arrays` makes. NoOpenGLError if nothing can be rendered here.
        """


class ArticulationView(ABC):
    """One robot, or jointed bodies of the scene, in every env that holds it with the same dofs and bodies."""

    name: str
    dof_names: tuple[str, ...]
    body_names: tuple[str, ...]
    contact_links: tuple[str, ...]

    @abstractmethod
    def get_joint_positions(self, env_ids: EnvIds | None = None) -> Array:
        """Return joint positions `(env_num, dof)` [rad or m], or `(m, dof)` of some envs."""

    @abstractmethod
    def get_joint_velocities(self) -> Array:
        """Return joint velocities `(env_num, dof)` [rad/s or m/s]."""

    @abstractmethod
    def get_joint_efforts(self) -> Array:
        """Return the forces of the drives during the last substep, after clamping, `(env_num, dof)` [N·m or N]."""

    @abstractmethod
    def get_contact_forces(self) -> Array:
        """Return net contact forces on the `contact_links` during the last substep, `(env_num, k, 3)` [N], env axes."""

    @abstractmethod
    def measure(self, probe: Probe) -> Array:
        """Return the measurements of a probe of the robot's model, `(env_num, k)`, see `Probe`.

        Values are those of the last substep, at its beginning; in a fresh episode, those of its first instant.
        KeyError if the model has no such probe.
        """

    @abstractmethod
    def cast_rays(
        self,
        env_ids: EnvIds,
        origins: Any,
        directions: Any,
        *,
        groups: Sequence[int],
        link: str,
        through_robot: bool = True,
    ) -> Any:
        """Return the distances [m] along rays to the first geom, `(n, rays)`, infinite where there is none.

        `origins` `(n, rays or 1, 3)` and `directions` (unit vectors) `(n, rays, 3)` are in the frames of the envs
        `env_ids`. Geoms of the given groups are seen, but never those of the link `link`, and none of the robot if rays
        go `through_robot`. Distances are of the kind of `directions`: arrays of numpy, or in a `DeviceWorld` tensors,
        for the ids of all envs as a tensor; then the host does not wait. MemoryError if those do not fit on the device.
        """

    @abstractmethod
    def get_root_poses(self, env_ids: EnvIds | None = None) -> tuple[Array, Array]:
        """Return position `(env_num, 3)`, orientation `(env_num, 4)` of the root body, or `(m, ...)` of some envs."""

    @abstractmethod
    def get_root_velocities(self, env_ids: EnvIds | None = None) -> tuple[Array, Array]:
        """Return linear and angular velocity of the root body, `(env_num, 3)` or `(m, 3)` of some envs, env axes."""

    @abstractmethod
    def get_link_poses(self, links: Sequence[str]) -> tuple[Array, Array]:
        """Return k links' positions `(env_num, k, 3)`, orientations `(env_num, k, 4)`. KeyError with close matches."""

    @abstractmethod
    def get_link_velocities(self, links: Sequence[str]) -> tuple[Array, Array]:
        """Return linear and angular velocities of k links `(env_num, k, 3)`, env axes. KeyError with close matches."""

    @abstractmethod
    def set_joint_positions(self, env_ids: EnvIds, positions: Any, joints: Any = slice(None)) -> None:
        """Set joint positions `(n, k)`; `joints` are k dof indices. Position targets follow."""

    @abstractmethod
    def set_joint_velocities(self, env_ids: EnvIds, velocities: Any, joints: Any = slice(None)) -> None:
        """Set joint velocities `(n, k)`."""

    @abstractmethod
    def set_root_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        """Teleport the root, `(n, 3)` and `(n, 4)`; the joints keep their positions."""

    @abstractmethod
    def set_root_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        """Set root velocities, `(n, 3)` each, env axes. Nothing happens to a fixed base."""

    @abstractmethod
    def set_targets(
        self,
        env_ids: EnvIds,
        positions: Any = None,
        velocities: Any = None,
        efforts: Any = None,
        joints: Any = slice(None),
    ) -> None:
        """Set drive targets `(n, k)` [rad, rad/s, N·m]; None or NaN entries keep what was set before.

        A target beyond `LARGEST_NUMBER` is as good as that.
        """

    @abstractmethod
    def get_gains(self, env_ids: EnvIds | None = None) -> tuple[Array, Array]:
        """Return the stiffness and damping of the drives, `(env_num, dof)` each, or `(m, dof)` of some envs."""

    @abstractmethod
    def set_gains(self, env_ids: EnvIds, stiffness: Any = None, damping: Any = None, joints: Any = slice(None)) -> None:
        """Change gains of some envs at run time, `(n, k)` or broadcastable."""

    @abstractmethod
    def set_frictions(self, env_ids: EnvIds, coefficients: Any) -> None:
        """Set sliding friction coefficients `(n,)` of all geoms of the robot."""

    @abstractmethod
    def set_footprints(self, env_ids: EnvIds, links: Sequence[str], factors: Any) -> None:
        """Scale what links collide with along x and y of each link, about the middle of its collision geoms.

        Geoms move, and capsules become shorter; heights, radii and the sizes of other geoms stay.

        Args:
            env_ids: the envs, `(n,)`.
            links: names of links.
            factors: of the model's own footprint, above 0 and at most 1, `(n, 2)` or broadcastable.
        """

    @abstractmethod
    def set_joint_dynamics(self, env_ids: EnvIds, armature: Any = None, damping: Any = None) -> None:
        """Change the properties of joints other than their drives, `(n, dof)` or broadcastable.

        Armature: inertia of motor and gears as the joint feels it [kg·m² or kg]; damping [N·m·s/rad or N·s/m].
        """

    @abstractmethod
    def set_self_collisions(self, env_ids: EnvIds, enabled: bool) -> None:
        """Let links of the robot collide with each other, or not, until the episode ends; see `RobotSpec`.

        ValueError where that cannot be changed any more.
        """

    @abstractmethod
    def set_controls(self, env_ids: EnvIds, controls: Any) -> None:
        """Set raw control signals `(n, nu)` of the model's own actuators, in the model's order; as large as targets."""

    @property
    @abstractmethod
    def control_names(self) -> tuple[str, ...]:
        """Names of the model's own actuators; empty for a robot with joint drives."""

    @property
    @abstractmethod
    def control_ranges(self) -> NDArray[np.float64]:
        """Ranges of the model's own actuators `(nu, 2)`; infinite where unlimited."""

    @property
    @abstractmethod
    def joint_dynamics(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Armature and damping of the joints in the model, `(dof,)` each, see `set_joint_dynamics`."""

    @property
    @abstractmethod
    def joint_ranges(self) -> NDArray[np.float64]:
        """Joint limits `(dof, 2)` [rad or m]; infinite where unlimited."""

    @abstractmethod
    def body(self, name: str) -> BodyView:
        """Return the link of that name. KeyError with close matches."""

    @abstractmethod
    def box(self, env_id: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return lowest and highest corner `(3,)` [m] of a box around its visible geoms in an env, env frame."""

    @abstractmethod
    def chain(self, base: str, tip: str, env_id: int) -> KinematicChain:
        """Return the joints between two links, `''` being the root, as the model of one env has them.

        KeyError if there is no such link, ValueError if `tip` does not hang on `base`.
        """
