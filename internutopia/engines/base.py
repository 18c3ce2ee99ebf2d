"""Physics world contract: `env_num` scenes side by side, stepped together.

The runner, the robots and the sensors access physics only through this module and its `views`.
Implementations: `mujoco/` (CPU), `warp/` (GPU) and `physx/`, with `isaac/` as another host, on what they share,
`batched/`.

Frames. Physics runs in env coordinates: every pose here is in the frame of its env. `World.env_origins` is where the
env frames stand in the world; add it to get world coordinates. A trajectory does not depend on the env id.

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
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from internutopia.engines.views import ArticulationView, BodyView, CameraView, EnvIds
from internutopia.model.spec import SceneSpec
from internutopia.rendering.camera import Quality, RenderRequest
from internutopia.util.arrays import ArrayMaker

if TYPE_CHECKING:
    from internutopia.model.semantics import SceneLabels  # it imports MuJoCo, which clients need not have


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


class SceneHandle(Protocol):
    """Scene that is ready to be loaded; its contents are private to the backend."""

    @property
    def robot_names(self) -> tuple[str, ...]:
        """Names of the robots in the scene."""
        ...

    def camera_name(self, robot: str | None, path: str) -> str:
        """Return the camera at a prim path below a robot, or (None) the scene. ValueError naming those there are."""
        ...


class World(ABC):
    """`env_num` envs of physics."""

    env_num: int
    env_origins: NDArray[np.float64]  # (env_num, 3) [m], where each env frame stands in the world frame
    dt: float  # [s], one substep
    substeps: int  # of one step
    times: NDArray[np.float64]  # (env_num,) [s], since the episode's start
    version: int  # grows whenever any state may have changed
    picture_seconds: float = 0.0  # [s], that cameras of robots have spent on images
    keeps_frames: bool = False  # True if images that are read directly stay as they are from frame to frame
    stepped: int = 0  # how much of `version` is steps
    arrays: ArrayMaker  # of the kind that views give and take
    write_mask: Any = None  # of the envs that setters change, see `DeviceWorld.masked_writes`; None for all
    noise_keys: NDArray[np.uint64]  # (env_num,), set by the runner: what random numbers of an env's episode depend on

    _frame_due: bool = True
    _frames: int = 0

    @property
    def frame_due(self) -> bool:
        """True if cameras capture new images for the observations that are made now."""
        return self._frame_due

    @frame_due.setter
    def frame_due(self, is_due: bool) -> None:
        self._frame_due = is_due
        self._frames += is_due

    @property
    def picture_version(self) -> int:
        """Number that changes whenever a camera that is read directly has a new image.

        If it keeps frames, that is when one is due, or something has changed by other means than steps.
        """
        return self.version - self.stepped + self._frames if self.keeps_frames else self.version

    @cached_property
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
        """Return everything that the physics of an env depends on, its changes of the model included; a copy."""

    def get_states(self, env_ids: EnvIds) -> list[PhysicsStates]:
        """Return what `get_state` returns for each of these envs, for many of them at once."""
        states: list[PhysicsStates] = []
        for env_id in env_ids.tolist():
            state = self.get_state(env_id)
            rows = {name: array[None] for name, array in state.arrays.items()}
            states.append(PhysicsStates(np.array([env_id], np.intp), rows, [PhysicsState(state.model, {})]))
        return states

    def change_scene(self, env_id: int, scene: SceneSpec) -> SceneSpec:
        """Let an env go on with other objects or joints in its scene; what stays keeps its state bit for bit.

        Args:
            env_id: the env; it runs a scene of the same asset and robots.
            scene: the spec of its scene, in which objects and joints were added or removed. Poses are those of what is
                new; what is not given of the frames of new joints is where their bodies are now.

        Returns:
            The spec, with the frames of its joints.

        Raises:
            FileNotFoundError, ValueError: what is new cannot be compiled; nothing has changed.
            NotImplementedError: the engine cannot.
        """
        raise NotImplementedError(
            f"env {env_id}: only backends 'mujoco' and 'physx' add and remove objects and joints while an env runs; "
            'put them into the task config, and create joints before the first reset of their env'
        )

    @abstractmethod
    def check_compatible(self, env_id: int, state: PhysicsState) -> str | None:
        """Return why an env cannot be put into a state, None if it can."""

    @abstractmethod
    def set_state(self, env_id: int, state: PhysicsState) -> None:
        """Put an env into a state that is compatible: it continues from there bit for bit."""

    @abstractmethod
    def articulation(self, name: str, env_id: int) -> ArticulationView:
        """Return the robot `name` of env `env_id`, as a view over all envs whose robot `name` has the same structure.

        `scene/<prim path>`: what hinges and slides move at or below that prim of the scene. KeyError with close
        matches.
        """

    @abstractmethod
    def body(self, name: str, env_id: int) -> BodyView:
        """Return the object or movable scene body `name` of env `env_id`, as a view over all envs that have it."""

    @abstractmethod
    def body_names(self, env_id: int) -> tuple[str, ...]:
        """Return the names of the objects and movable scene bodies of one env."""

    @abstractmethod
    def camera(self, robot: str | None, path: str, env_id: int) -> CameraView:
        """Return the camera at a prim path below a robot, or (None) the scene. ValueError naming those there are."""

    @abstractmethod
    def render(self, requests: Sequence[RenderRequest], quality: Quality | None = None) -> None:
        """Render images of envs as seen from anywhere, in `SimConfig.render_quality` by default.

        NoOpenGLError if nothing can be rendered here.
        """

    @abstractmethod
    def labels(self, env_id: int) -> SceneLabels:
        """Return the labels that `Frame.labels` of an env refers to. ValueError if it runs no scene."""

    @abstractmethod
    def close(self) -> None:
        """Free threads and memory; may be called twice."""


class DeviceWorld(World):
    """World whose views return and accept torch tensors, and which the host need not wait for.

    What holds for float32 arrays of a `World` holds for tensors on `device`. Some envs are selected by a mask
    `(env_num,)`, which the host does not read; see `EnvIds`.
    """

    device: Any  # torch.device
    device_noise_keys: Any  # int64 (env_num,): what `noise_keys` are, set where episodes are started

    @contextmanager
    def masked_writes(self, mask: Any) -> Iterator[None]:
        """Return a context in which setters that are passed the ids of all envs change those of a mask only."""
        outer, self.write_mask = self.write_mask, mask
        try:
            yield
        finally:
            self.write_mask = outer

    @abstractmethod
    def advance(self, mask: Any) -> Any:
        """Step the envs of a mask, without waiting. Returns which of them failed, bool `(env_num,)`."""

    @abstractmethod
    def reset_to_start(self, mask: Any) -> None:
        """Start envs afresh in the scenes that they have, as `load` did when it gave it to them."""
