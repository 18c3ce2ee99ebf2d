"""Config of the simulator: time steps, physics engine and machine; contacts, and limits on model files."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, Self

from pydantic import Field, NonNegativeInt, field_validator, model_validator

from internutopia.config.base import BaseCfg, Bytes, Count, PositiveFloat, Seconds
from internutopia.util.bounds import (
    MAX_COUNT,
    MAX_SOLVER_ITERATIONS,
    MAX_STEP_SECONDS,
    MAX_SUBSTEPS,
    MAX_THREADS,
    MAX_TIMESTEPS,
)
from internutopia.util.conventions import conventions_of, version_of_process


class ContactCfg(BaseCfg):
    """Contact settings of MuJoCo, on the CPU or on Warp; None leaves a setting to the models of a scene.

    MuJoCo's documentation describes each option, under `option`. PhysX has no counterpart.
    """

    integrator: Literal['Euler', 'RK4', 'implicit', 'implicitfast', 'discrete'] | None = None
    """Integrator of velocities and positions. `'discrete'` solves contacts and damped drives together, so a finger that
    presses does not chatter; under it nothing bounces."""
    cone: Literal['pyramidal', 'elliptic'] | None = None
    """Friction cone: `'pyramidal'` is faster, `'elliptic'` the same in all directions, and slips less with a higher
    `impratio`."""
    impratio: PositiveFloat | None = None
    """Stiffness of friction relative to the normal force; MuJoCo's default is 1. Pays off with an elliptic cone."""
    noslip_iterations: NonNegativeInt | None = Field(default=None, le=MAX_SOLVER_ITERATIONS)
    """Passes of a solver that takes out the slip that soft friction leaves; 0 is none."""
    solver: Literal['PGS', 'CG', 'Newton'] | None = None
    """Algorithm of the constraint solver; `'PGS'` is not available on Warp."""
    iterations: Count | None = Field(default=None, le=MAX_SOLVER_ITERATIONS)
    """Passes of the solver at most; it stops earlier when it has converged."""
    ls_iterations: Count | None = Field(default=None, le=MAX_SOLVER_ITERATIONS)
    """Passes of the line search in each of them, at most."""
    tolerance: PositiveFloat | None = None
    """Improvement of the cost, scaled, at which the solver stops."""


class PhysxCfg(BaseCfg):
    """Sizes of PhysX's buffers on a GPU, which do not grow; None: sufficient for the scene and the number of envs.

    An error names the field of a buffer that was too small, and the size needed. Other backends, and PhysX on the CPU,
    have no such buffers. PhysX's documentation describes them (`PxGpuDynamicsMemoryConfig`).
    """

    gpu_found_lost_pairs_capacity: Count | None = None
    """Pairs of bodies that start or stop being close to each other in a time step."""
    gpu_found_lost_aggregate_pairs_capacity: Count | None = None
    """The same for colliders within articulations that are close to each other."""
    gpu_total_aggregate_pairs_capacity: Count | None = None
    """Pairs of articulations, or of an articulation and a body, that are close to each other."""
    gpu_max_rigid_contact_count: Count | None = None
    """Contact points."""
    gpu_max_rigid_patch_count: Count | None = None
    """Contact patches: points that share a normal."""
    gpu_collision_stack_size: Bytes | None = None
    """Memory for collision detection, bytes; None is PhysX's 64 MiB."""
    gpu_heap_capacity: Bytes | None = None
    """Initial memory of PhysX, bytes; None is its 64 MiB. It allocates more if necessary."""
    gpu_temp_buffer_capacity: Bytes | None = None
    """Memory for intermediate results, bytes; None is PhysX's 16 MiB."""


class AssetLimitsCfg(BaseCfg):
    """Limits on model files (scenes, robots, objects); a file beyond one raises an error that names both.

    Sizes are checked before MuJoCo's and USD's readers open a file. `time` and `memory` are for files of unknown
    origin: with one of them, files are first read and compiled in a separate process, so a file that hangs or
    crashes a reader raises an error, too.
    """

    time: PositiveFloat | None = None
    """Time that reading and compiling the files of a task may take in a separate process, s; including the
    decomposition of concave meshes, if it is not cached. None is no limit."""
    memory: Count | None = None
    """Memory limit of this process, bytes, in addition to its initial memory. None is no limit; only on Linux."""
    file_size: Count = 4 * 2**30
    """Size of a file, bytes."""
    text_size: Count = 512 * 2**20
    """Size of a file of XML (MJCF, URDF, DAE) or of an OBJ mesh, bytes; in memory, it is many times as large."""
    depth: Count = 1000
    """Nesting depth of XML elements, prims and links of a robot."""
    elements: Count = 1_000_000
    """XML elements of an MJCF, URDF or DAE file."""
    copies: Count = 50_000
    """Elements that `replicate`, `attach` and `flexcomp` in an MJCF file, and in the models it attaches, expand to."""
    prims: Count = 1_000_000
    """Prims of a USD stage, including those from references and instancers."""
    pixels: Count = 2**27
    """Pixels of an image, points of a height field, numbers that an MJCF file reserves (`size`)."""

    @property
    def own_process(self) -> bool:
        """True if files are first read in a separate process."""
        return self.time is not None or self.memory is not None

    def of_sizes(self) -> Self:
        """Return the limits without `time` and `memory`: only those on sizes."""
        return self.update(time=None, memory=None)


class Simulator(Enum):
    """Values of the `simulator_type` argument that 2.x factories (`IArticulation.create`, ...) take."""

    ISAACSIM = 'isaac_sim'


class SimConfig(BaseCfg):
    """Simulation settings: time steps, physics engine, device and rendering."""

    physics_dt: Seconds = 1 / 60
    """Length of one physics step, s, at most 1; text such as `'1/240'` is read as a fraction."""
    max_timestep: Seconds = 1 / 200
    """Longest time step of the engine, s, written like `physics_dt`.

    A longer physics step is split into equal time steps: by default, 1/60 s into four of 1/240 s. Nothing else changes.
    Contacts need short steps: a wall does not stop an object that moves by its own size in one step.
    """
    contact: ContactCfg = ContactCfg()
    """Contact settings that override those of the models."""
    physx: PhysxCfg = PhysxCfg()
    """Sizes of PhysX's buffers on a GPU that override those computed from scenes and number of envs."""
    asset_limits: AssetLimitsCfg = AssetLimitsCfg()
    """Limits on the size of model files, and on the time and memory of reading them."""
    rendering_dt: Seconds = 1 / 60
    """Time between two frames of the renderer, s, at most 1, written like `physics_dt`."""
    rendering_interval: NonNegativeInt | None = Field(default=None, le=MAX_COUNT)
    """A frame is rendered every `rendering_interval + 1` steps; None means 5."""
    render_quality: Literal['plain', 'fast', 'full'] = 'fast'
    """Rendering quality: `'full'`; `'fast'` without shadows, reflections and antialiasing; or `'plain'`, also without
    textures and sky, and with coarser round shapes."""
    renderer: Literal['auto', 'opengl', 'raytrace'] = 'auto'
    """Renderer of the robots' cameras: OpenGL on the host, or with `'mujoco_warp'` a ray tracer on the device;
    `'auto'` takes the latter on a GPU, and RTX with `'isaac_sim'`."""
    use_fabric: bool = False
    """True if Isaac Sim keeps the scene in Fabric; other backends ignore it."""
    headless: bool = True
    """True if Isaac Sim runs without a window; other backends never open one, and log this once if it is False."""
    webrtc: bool = False
    """True if Isaac Sim streams its window over WebRTC; other backends ignore it."""
    native: bool = False
    """Deprecated, without effect."""
    backend: Literal['mujoco', 'mujoco_warp', 'physx', 'isaac_sim'] = 'mujoco'
    """Physics engine: MuJoCo on the CPU, MuJoCo Warp on an NVIDIA GPU (extra `gpu`), NVIDIA's PhysX (extra `physx`),
    or the same in Isaac Sim."""
    device: str = 'cpu'
    """Device the engine computes on: `'cpu'`, or a GPU such as `'cuda:0'`, except for `'mujoco'`."""
    substeps: Count = Field(default=1, le=MAX_SUBSTEPS)
    """Physics steps per env step: one `step` advances time by `substeps * physics_dt`."""
    threads: Count | None = Field(default=None, le=MAX_THREADS)
    """Threads of the CPU engine; None means one per core."""
    scene_cache: Bytes = 256 << 20
    """Memory for compiled scenes that may be reused, bytes, or text such as `'2GiB'`; 256 MiB.

    Scenes that no env runs are kept for later episodes and Envs, most recently used first. If the scenes in rotation
    do not fit, they are compiled again each time, and a warning says so. Each process has one cache, whose size is set
    by the latest Env.
    """
    omni_compat: bool = False
    """True if an Env makes the Isaac Sim modules importable that extension packages use (`internutopia.compat`);
    `Config(compat='2.x')` always does."""

    @property
    def has_tensors(self) -> bool:
        """True if the engine computes on tensors, which the array API can return as they are."""
        return self.backend == 'mujoco_warp' or (self.backend == 'physx' and self.device != 'cpu')

    @model_validator(mode='before')
    @classmethod
    def _select_fields(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        return conventions_of(version_of_process()).select_fields(cls, values)

    @field_validator('physics_dt', 'rendering_dt')
    @classmethod
    def _check_unit(cls, value: float) -> float:
        if value > MAX_STEP_SECONDS:
            raise ValueError(
                f'expected seconds, {MAX_STEP_SECONDS:g} at most, got {value:g}; {value:g} ms are {value / 1000:g}, '
                f"and {value:g} per second are '1/{value:g}'"
            )
        return value

    @model_validator(mode='after')
    def _check_timesteps(self) -> Self:
        timesteps = self.substeps * max(float(self.physics_dt) / float(self.max_timestep), 1.0)
        if timesteps > MAX_TIMESTEPS:
            raise ValueError(
                f'substeps={self.substeps} of physics_dt={self.physics_dt:g} s are {timesteps:.3g} time steps of '
                f'max_timestep={self.max_timestep:g} s in one step of an env; there may be {MAX_TIMESTEPS}'
            )
        return self
