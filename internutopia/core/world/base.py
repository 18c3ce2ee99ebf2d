"""Physics world contract: `env_num` scenes side by side, stepped together.

The runner, the robots and the sensors know physics only through this module. Implementations: `mujoco/` (CPU) and
`warp/` (GPU) on what they share, `batched/`. An Isaac Sim world keeps a stage and works in world coordinates
underneath.

Frames. Physics runs in env coordinates: every pose here is in the frame of its env. `World.env_origins` is where the
env frames stand in the world; whoever wants world coordinates adds it. A trajectory does not depend on the env id.

Arrays. Views are batched over all envs: an array has shape `(env_num, ...)`, row = env id, float32. Rows of envs that
do not hold the articulation or body are meaningless. What a getter returns is a read-only buffer that belongs to the
view and is valid until the next `step`, `load` or setter: copy what you keep, write through the setters. Setters take
values for the rows `env_ids` only, `(len(env_ids), ...)`; other envs are not touched, not even by a bit.

Life of a scene::

    handle = world.prepare(spec)                   # reads assets, compiles, may raise; changes nothing
    world.load({3: (handle, spec)})                # env 3 starts afresh in that scene, other envs are untouched
    h1 = world.articulation('h1', 3)               # a view over all envs whose 'h1' is built like env 3's
    h1.set_targets(env_ids, positions=q)           # drive targets stay until replaced
    failed = world.step(active)                    # {env_id: reason}: those envs hold no meaningful state any more
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from internutopia.core.model.kinematics import KinematicChain
from internutopia.core.model.spec import Probe, SceneSpec
from internutopia.core.render.camera import Frame, Intrinsics, PictureKind, Quality, RenderRequest
from internutopia.core.util.arrays import ArrayMaker

if TYPE_CHECKING:
    from internutopia.core.model.semantics import SceneLabels  # it imports MuJoCo, which clients need not have

Array = NDArray[np.float32]
# Which envs a setter is about: an index array of the host, one row of values for each. A `DeviceWorld` also takes the
# ids of all envs as a tensor, one row of values for every env: then those of the mask in force are changed, see
# `DeviceWorld.masked_writes`
EnvIds = NDArray[np.intp]

LARGEST_NUMBER = 1e10
"""Largest number that an engine is given; of a state that has a larger one, MuJoCo says that it diverged."""


@dataclass(frozen=True)
class PhysicsState:
    """The physics of one env: digest of its model, and arrays by names that are the backend's own."""

    model: bytes
    arrays: Mapping[str, NDArray[Any]]

    def misfits(self, own: Mapping[str, NDArray[Any]]) -> list[str]:
        """Names of the arrays that are missing here, unknown, or of another shape or type than an env's own."""
        form = {name: (array.shape, array.dtype) for name, array in own.items()}
        given = {
            name: (array.shape, array.dtype) if isinstance(array, np.ndarray) else None
            for name, array in self.arrays.items()
        }
        return sorted(name for name in {**form, **given} if form.get(name) != given.get(name) or name not in form)


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


class SceneHandle(Protocol):
    """A scene that is ready to be loaded; what it holds is the backend's own business."""

    @property
    def robot_names(self) -> tuple[str, ...]:
        """Names of the robots in it."""
        ...

    def camera_name(self, robot: str | None, path: str) -> str:
        """The camera at a prim path below a robot, or (None) below the scene. ValueError naming those there are."""
        ...


class BodyView(ABC):
    """A rigid body (a link, an object, a movable part of the scene) in every env that has it."""

    name: str

    @abstractmethod
    def get_poses(self) -> tuple[Array, Array]:
        """Position `(env_num, 3)` [m] and orientation `(env_num, 4)` of the body frame, env frame."""

    @abstractmethod
    def get_velocities(self) -> tuple[Array, Array]:
        """Linear velocity of the frame's origin [m/s] and angular velocity [rad/s], `(env_num, 3)` each, env axes."""

    @abstractmethod
    def get_masses(self) -> Array:
        """Masses `(env_num,)` [kg]."""

    @abstractmethod
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        """Move the body; `(n, 3)` and `(n, 4)`, None leaves one as it is. ValueError for a link of an articulation."""

    @abstractmethod
    def set_velocities(self, env_ids: EnvIds, linear: Any = None, angular: Any = None) -> None:
        """Set velocities, `(n, 3)` each, env axes. ValueError for a body that cannot move freely."""

    @abstractmethod
    def set_masses(self, env_ids: EnvIds, masses: Any) -> None:
        """Set masses `(n,)` [kg]; inertias scale along."""


class CameraView(ABC):
    """A camera in every env that has it; it looks along its -z axis, +y is up in the picture."""

    name: str

    @abstractmethod
    def get_poses(self) -> tuple[Array, Array]:
        """Position `(env_num, 3)` [m] and orientation `(env_num, 4)`, env frame."""

    @abstractmethod
    def set_poses(self, env_ids: EnvIds, positions: Any = None, orientations: Any = None) -> None:
        """Move the camera on the link that carries it, where it stays until the episode ends; `(n, 3)`, `(n, 4)`."""

    @abstractmethod
    def get_mount_poses(self) -> tuple[Array, Array]:
        """Position `(env_num, 3)` [m] and orientation `(env_num, 4)` of what carries the camera, env frame."""

    @abstractmethod
    def intrinsics(self, env_id: int, size: tuple[int, int]) -> Intrinsics:
        """How the camera projects onto pictures of `size` (width, height) [pixels]."""

    @abstractmethod
    def render(self, env_ids: EnvIds, frames: Sequence[Frame]) -> None:
        """Render what it sees now in each env into that env's frame. NoOpenGLError if nothing can be rendered here."""

    @abstractmethod
    def pictures(self, size: tuple[int, int], kinds: tuple[PictureKind, ...]) -> Mapping[PictureKind, Any]:
        """What it sees now in all envs, pictures `(env_num, ...)` of `size` (width, height) [pixels], see `Frame`.

        They are arrays of the kind that `World.arrays` makes. NoOpenGLError if nothing can be rendered here.
        """


class ArticulationView(ABC):
    """One robot, or jointed bodies of the scene, in every env that holds it with the same dofs and bodies."""

    name: str
    dof_names: tuple[str, ...]
    body_names: tuple[str, ...]
    contact_links: tuple[str, ...]

    @abstractmethod
    def get_joint_positions(self) -> Array:
        """`(env_num, dof)` [rad or m]."""

    @abstractmethod
    def get_joint_velocities(self) -> Array:
        """`(env_num, dof)` [rad/s or m/s]."""

    @abstractmethod
    def get_joint_efforts(self) -> Array:
        """Forces of the drives during the last substep, after clamping, `(env_num, dof)` [N·m or N]."""

    @abstractmethod
    def get_contact_forces(self) -> Array:
        """Net contact forces on the links `contact_links` during the last substep, `(env_num, k, 3)` [N], env axes."""

    @abstractmethod
    def measure(self, probe: Probe) -> Array:
        """What a probe of the robot's model measures, `(env_num, k)`, see `Probe`.

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
        """Distances [m] along rays to the first geom, `(n, rays)`, infinite where there is none.

        `origins` `(n, rays or 1, 3)` and `directions` (unit vectors) `(n, rays, 3)` are in the frames of the envs
        `env_ids`. Geoms of the given groups are seen, but never those of the link `link`, and none of the robot if rays
        go `through_robot`. Distances are of the kind of `directions`: arrays of numpy, or in a `DeviceWorld` tensors,
        for the ids of all envs as a tensor; then the host does not wait. MemoryError if those do not fit on the device.
        """

    @abstractmethod
    def get_root_poses(self) -> tuple[Array, Array]:
        """Position `(env_num, 3)` and orientation `(env_num, 4)` of the root body."""

    @abstractmethod
    def get_root_velocities(self) -> tuple[Array, Array]:
        """Linear and angular velocity of the root body, `(env_num, 3)` each, env axes."""

    @abstractmethod
    def get_link_poses(self, links: Sequence[str]) -> tuple[Array, Array]:
        """Positions `(env_num, k, 3)` and orientations `(env_num, k, 4)` of k links. KeyError with close matches."""

    @abstractmethod
    def get_link_velocities(self, links: Sequence[str]) -> tuple[Array, Array]:
        """Linear and angular velocities of k links, `(env_num, k, 3)` each, env axes. KeyError with close matches."""

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
    def get_gains(self) -> tuple[Array, Array]:
        """Stiffness and damping of the drives, `(env_num, dof)` each."""

    @abstractmethod
    def set_gains(self, env_ids: EnvIds, stiffness: Any = None, damping: Any = None, joints: Any = slice(None)) -> None:
        """Change gains of some envs at run time, `(n, k)` or broadcastable."""

    @abstractmethod
    def set_frictions(self, env_ids: EnvIds, coefficients: Any) -> None:
        """Sliding friction coefficients `(n,)` of all geoms of the robot."""

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
        """Change what joints have beside their drives, `(n, dof)` or broadcastable.

        Armature: inertia of motor and gears as the joint feels it [kg·m² or kg]; damping [N·m·s/rad or N·s/m].
        """

    @abstractmethod
    def set_self_collisions(self, env_ids: EnvIds, enabled: bool) -> None:
        """Let links of the robot collide with each other, or not, until the episode ends; see `RobotSpec`.

        ValueError where that cannot be changed any more.
        """

    @abstractmethod
    def set_controls(self, env_ids: EnvIds, controls: Any) -> None:
        """Raw control signals `(n, nu)` of the model's own actuators, in the model's order; as large as targets."""

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
        """The link of that name. KeyError with close matches."""

    @abstractmethod
    def box(self, env_id: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lowest and highest corner `(3,)` [m] of a box around what pictures show of it in an env, env frame."""

    @abstractmethod
    def chain(self, base: str, tip: str, env_id: int) -> KinematicChain:
        """The joints between two links, `''` being the root, as the model of one env has them.

        KeyError if there is no such link, ValueError if `tip` does not hang on `base`.
        """


class World(ABC):
    """`env_num` envs of physics."""

    env_num: int
    env_origins: NDArray[np.float64]  # (env_num, 3) [m], where each env frame stands in the world frame
    dt: float  # [s], one substep
    substeps: int  # of one step
    times: NDArray[np.float64]  # (env_num,) [s], since the episode's start
    version: int  # grows whenever any state may have changed
    frame_due: bool = True  # whether cameras take new pictures for the observations that are made now
    arrays: ArrayMaker  # of the kind that views give and take
    write_mask: Any = None  # of the envs that setters change, see `DeviceWorld.masked_writes`; None for all
    noise_keys: NDArray[np.uint64]  # (env_num,), told by the runner: what random numbers of an env's episode depend on

    @property
    def step_dt(self) -> float:
        """Length of a step [s]."""
        return self.substeps * self.dt

    @abstractmethod
    def prepare(self, scene: SceneSpec) -> SceneHandle:
        """Read and compile a scene (cached by content). FileNotFoundError, ValueError; changes nothing."""

    @abstractmethod
    def load(self, scenes: Mapping[int, tuple[SceneHandle, SceneSpec]]) -> None:
        """Start each given env afresh: its prepared scene, with the poses and joint positions of its scene model."""

    @abstractmethod
    def unload(self, env_ids: EnvIds) -> None:
        """Leave envs empty; stepping them costs nothing."""

    @abstractmethod
    def step(self, env_ids: EnvIds) -> dict[int, str]:
        """Advance the given envs by one step. Returns the envs that failed (diverged) with the reason."""

    @abstractmethod
    def get_state(self, env_id: int) -> PhysicsState:
        """Everything that the physics of an env depends on, its changes of the model included; a copy."""

    def get_states(self, env_ids: EnvIds) -> list[PhysicsStates]:
        """What `get_state` gives for each of these envs, for many of them at once."""
        states: list[PhysicsStates] = []
        for env_id in env_ids.tolist():
            state = self.get_state(env_id)
            rows = {name: array[None] for name, array in state.arrays.items()}
            states.append(PhysicsStates(np.array([env_id], np.intp), rows, [PhysicsState(state.model, {})]))
        return states

    @abstractmethod
    def check_compatible(self, env_id: int, state: PhysicsState) -> str | None:
        """Why an env cannot be put into a state, None if it can."""

    @abstractmethod
    def set_state(self, env_id: int, state: PhysicsState) -> None:
        """Put an env into a state that is compatible: it goes on from there to the bit."""

    @abstractmethod
    def articulation(self, name: str, env_id: int) -> ArticulationView:
        """The robot `name` of env `env_id`, as a view over all envs whose robot of that name has the same structure.

        `scene/<prim path>`: what hinges and slides move at or below that prim of the scene. KeyError with close
        matches.
        """

    @abstractmethod
    def body(self, name: str, env_id: int) -> BodyView:
        """The object or movable scene body `name` of env `env_id`, as a view over all envs that have it."""

    @abstractmethod
    def body_names(self, env_id: int) -> tuple[str, ...]:
        """Names of the objects and movable scene bodies of one env."""

    @abstractmethod
    def camera(self, robot: str | None, path: str, env_id: int) -> CameraView:
        """The camera at a prim path below a robot, or (None) below the scene. ValueError naming those there are."""

    @abstractmethod
    def render(self, requests: Sequence[RenderRequest], quality: Quality | None = None) -> None:
        """Render pictures of envs as seen from anywhere, in `SimConfig.render_quality` unless told otherwise.

        NoOpenGLError if nothing can be rendered here.
        """

    @abstractmethod
    def labels(self, env_id: int) -> SceneLabels:
        """What `Frame.labels` of an env refers to. ValueError if it runs no scene."""

    @abstractmethod
    def close(self) -> None:
        """Free threads and memory. Twice is fine."""


class DeviceWorld(World):
    """A world whose views give and take torch tensors, and which the host need not wait for.

    What `World` says of float32 arrays holds for tensors on `device`. Some envs are said by a mask `(env_num,)`:
    which ones they are need not be known on the host; see `EnvIds`.
    """

    device: Any  # torch.device
    device_noise_keys: Any  # int64 (env_num,): what `noise_keys` are, told by whoever starts the episodes

    @contextmanager
    def masked_writes(self, mask: Any) -> Iterator[None]:
        """While this is entered, setters that are given the ids of all envs change those of a mask only."""
        outer, self.write_mask = self.write_mask, mask
        try:
            yield
        finally:
            self.write_mask = outer

    @abstractmethod
    def advance(self, mask: Any) -> Any:
        """`step` of the envs of a mask, without waiting. Returns which of them failed, bool `(env_num,)`."""

    @abstractmethod
    def reset_to_start(self, mask: Any) -> None:
        """Start envs afresh in the scenes that they have, as `load` did when it gave it to them."""
