"""Config of the simulator: time steps, physics engine and machine."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal, Self

from pydantic import Field, NonNegativeInt, field_validator, model_validator

from internutopia.config.asset_limits import AssetLimitsCfg
from internutopia.config.base import BaseCfg
from internutopia.config.compat import compat_of_process, known_fields
from internutopia.config.contact import ContactCfg
from internutopia.config.fields import Bytes, Count, Seconds
from internutopia.util.bounds import MAX_COUNT, MAX_STEP_SECONDS, MAX_SUBSTEPS, MAX_THREADS, MAX_TIMESTEPS


class Simulator(Enum):
    """Values of the `simulator_type` argument that 2.x factories (`IArticulation.create`, ...) take."""

    ISAACSIM = 'isaac_sim'


class SimConfig(BaseCfg):
    """Simulation settings: time steps, physics engine, device and rendering."""

    physics_dt: Seconds = 1 / 60
    """Length of one physics step, s, at most 1; text such as `'1/240'` is read as a fraction."""
    max_timestep: Seconds = 1 / 200
    """Longest time that the engine integrates in one go, s, written like `physics_dt`.

    A longer physics step is computed in as many equal parts as it takes: by default, 1/60 s in four of 1/240 s. Nothing
    else changes with it. Contacts need this: what moves by its own size in one go is not stopped by a wall. Isaac Sim
    ignores it.
    """
    contact: ContactCfg = ContactCfg()
    """Contact settings, where they should not follow from the models."""
    asset_limits: AssetLimitsCfg = AssetLimitsCfg()
    """Limits on the size of model files, and on the time and memory of reading them."""
    rendering_dt: Seconds = 1 / 60
    """Time between two frames of the renderer, s, at most 1, written like `physics_dt`."""
    rendering_interval: NonNegativeInt | None = Field(default=None, le=MAX_COUNT)
    """A frame is rendered every `rendering_interval + 1` steps; None means 5."""
    render_quality: Literal['fast', 'full'] = 'fast'
    """Rendering quality: `'fast'` without shadows, reflections and smooth edges, or `'full'`."""
    renderer: Literal['auto', 'opengl', 'raytrace'] = 'auto'
    """Renderer of the robots' cameras: OpenGL on the host, or with `'mujoco_warp'` a ray tracer on the device;
    `'auto'` takes the latter on a GPU, and RTX with `'isaac_sim'`."""
    use_fabric: bool = False
    """True if Isaac Sim keeps the scene in Fabric; other backends ignore it."""
    headless: bool = True
    """True if Isaac Sim runs without a window; other backends open none, and log that once if it is False."""
    webrtc: bool = False
    """True if Isaac Sim streams its window over WebRTC; other backends ignore it."""
    native: bool = False
    """Deprecated, without effect."""
    backend: Literal['mujoco', 'mujoco_warp', 'physx', 'isaac_sim'] = 'mujoco'
    """Physics engine: MuJoCo on the CPU, MuJoCo Warp on an NVIDIA GPU (extra `gpu`), NVIDIA's PhysX on the CPU (extra
    `physx`), or Isaac Sim."""
    device: str = 'cpu'
    """Device the engine computes on: `'cpu'`, or with `'mujoco_warp'` and `'isaac_sim'` a GPU such as `'cuda:0'`."""
    substeps: Count = Field(default=1, le=MAX_SUBSTEPS)
    """Physics steps per env step: one `step` advances time by `substeps * physics_dt`."""
    threads: Count | None = Field(default=None, le=MAX_THREADS)
    """Threads of the CPU engine; None means one per core."""
    scene_cache: Bytes = 256 << 20
    """Memory for compiled scenes that may be used again, bytes, or text such as `'2GiB'`; 256 MiB.

    Scenes that no env runs are kept for later episodes and Envs, those used last first. With less than the scenes in
    rotation need, they are compiled again each time they come, and a warning says so. There is one cache in a process:
    the Env that was made last says how large it is.
    """
    omni_compat: bool = False
    """True if an Env makes modules of Isaac Sim importable that extension packages use (`internutopia.compat`); with
    `Config(compat='2.x')` it does so in any case."""

    @model_validator(mode='before')
    @classmethod
    def _read_fields_of_2x(cls, values: Any) -> Any:
        return known_fields(cls, values) if isinstance(values, Mapping) and compat_of_process() == '2.x' else values

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
