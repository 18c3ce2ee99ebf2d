"""Which Isaac Sim is here: its names, the app, and what the world asks of them, in numpy arrays.

This is the only module that imports Isaac Sim, and only inside functions. Isaac Sim has had three sets of names: those
of `omni.isaac` (4.x; aliases in 5.x), those of `isaacsim.core` (4.5 and 5.x), and the experimental ones that replace
them in 6.x. `load_names` takes the newest set that is complete. `legacy.py` speaks the first two,
`experimental.py` the third; both are an `IsaacSim`.

Arrays here are float32, their rows are those of a handle's `paths`, and poses are in the world frame, quaternions
`(w, x, y, z)`. Velocities are those of the centre of mass, as PhysX has them.

Signatures: github.com/isaac-sim/IsaacSim (Apache-2.0), tags v5.0.0, v5.1.0 and v6.0.1.
"""

from __future__ import annotations

import atexit
import importlib
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.config import SimConfig
from internutopia.core.util import log

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]
Size = tuple[int, int]

VERSIONS = '4.5, 5.0, 5.1 and 6.0'
_APPS = ('isaacsim:SimulationApp', 'omni.isaac.kit:SimulationApp')
_LIVESTREAM = 'omni.kit.livestream.webrtc'
# What each set of names calls the things that are used, `module:attribute`; newest first
NAMES: dict[str, dict[str, str]] = {
    'experimental': {
        'Articulation': 'isaacsim.core.experimental.prims:Articulation',
        'RigidPrim': 'isaacsim.core.experimental.prims:RigidPrim',
        'GeomPrim': 'isaacsim.core.experimental.prims:GeomPrim',
        'XformPrim': 'isaacsim.core.experimental.prims:XformPrim',
        'Camera': 'isaacsim.core.experimental.objects:Camera',
        'Cube': 'isaacsim.core.experimental.objects:Cube',
        'app': 'isaacsim.core.experimental.utils.app:',
        'stage': 'isaacsim.core.experimental.utils.stage:',
        'SimulationManager': 'isaacsim.core.simulation_manager:SimulationManager',
        'RenderingManager': 'isaacsim.core.rendering_manager:RenderingManager',
        'GridCloner': 'isaacsim.core.cloner:GridCloner',
    },
    'isaacsim': {
        'World': 'isaacsim.core.api:World',
        'DynamicCuboid': 'isaacsim.core.api.objects:DynamicCuboid',
        'FixedCuboid': 'isaacsim.core.api.objects:FixedCuboid',
        'VisualCuboid': 'isaacsim.core.api.objects:VisualCuboid',
        'Articulation': 'isaacsim.core.prims:Articulation',
        'RigidPrim': 'isaacsim.core.prims:RigidPrim',
        'XFormPrim': 'isaacsim.core.prims:XFormPrim',
        'extensions': 'isaacsim.core.utils.extensions:',
        'prims': 'isaacsim.core.utils.prims:',
        'stage': 'isaacsim.core.utils.stage:',
        'GridCloner': 'isaacsim.core.cloner:GridCloner',
    },
    'omni.isaac': {
        'World': 'omni.isaac.core:World',
        'DynamicCuboid': 'omni.isaac.core.objects:DynamicCuboid',
        'FixedCuboid': 'omni.isaac.core.objects:FixedCuboid',
        'VisualCuboid': 'omni.isaac.core.objects:VisualCuboid',
        'Articulation': 'omni.isaac.core.articulations:ArticulationView',
        'RigidPrim': 'omni.isaac.core.prims:RigidPrimView',
        'XFormPrim': 'omni.isaac.core.prims:XFormPrimView',
        'extensions': 'omni.isaac.core.utils.extensions:',
        'prims': 'omni.isaac.core.utils.prims:',
        'stage': 'omni.isaac.core.utils.stage:',
        'GridCloner': 'omni.isaac.cloner:GridCloner',
    },
}
# Names that live in extensions which are loaded only where pictures are taken
CAMERAS: dict[str, str] = {
    'experimental': 'isaacsim.sensors.experimental.rtx:TiledCameraSensor',
    'isaacsim': 'isaacsim.sensors.camera:CameraView',
    'omni.isaac': 'omni.isaac.sensor:CameraView',
}
_app: Any = None  # Isaac Sim's app lives as long as the process: a second world uses the first one's


@dataclass(frozen=True)
class Box:
    """A box that is no asset: `size` [m] along its edges, `color` from 0 to 1, `mass` [kg]."""

    size: tuple[float, float, float]
    color: tuple[float, float, float]
    dynamic: bool
    collider: bool
    mass: float


class PrimHandle(ABC):
    """Prims of some envs."""

    @property
    @abstractmethod
    def paths(self) -> list[str]:
        """Prim paths of the rows."""

    @abstractmethod
    def poses(self) -> tuple[Floats, Floats]:
        """Positions `(n, 3)` [m] and orientations `(n, 4)`."""

    @abstractmethod
    def set_poses(self, positions: Any, orientations: Any, rows: Rows) -> None:
        """Move the prims of some rows."""


class BodyHandle(PrimHandle):
    """Rigid bodies."""

    @abstractmethod
    def velocities(self) -> tuple[Floats, Floats]:
        """Linear [m/s], of the centre of mass, and angular [rad/s], `(n, 3)` each."""

    @abstractmethod
    def set_velocities(self, linear: Any, angular: Any, rows: Rows) -> None:
        """Set the velocities of some rows."""

    @abstractmethod
    def masses(self) -> Floats:
        """Masses `(n,)` [kg]."""

    @abstractmethod
    def scale_masses(self, masses: Any, rows: Rows) -> None:
        """Set the masses `(k,)` of some rows; their inertias scale along."""

    @abstractmethod
    def contact_forces(self, dt: float) -> Floats:
        """Net contact forces `(n, 3)` [N] of a step of length `dt`; for bodies made with `contacts` only."""


class ArticulationHandle(PrimHandle):
    """Articulations of equal structure; joints in Isaac Sim's order."""

    @property
    @abstractmethod
    def joint_names(self) -> list[str]:
        """Names of the joints that have a position."""

    @abstractmethod
    def velocities(self) -> tuple[Floats, Floats]:
        """Of the roots, as of `BodyHandle`."""

    @abstractmethod
    def set_velocities(self, linear: Any, angular: Any, rows: Rows) -> None:
        """Of the roots of some rows."""

    @abstractmethod
    def joint_positions(self) -> Floats:
        """`(n, dof)` [rad or m]."""

    @abstractmethod
    def joint_velocities(self) -> Floats:
        """`(n, dof)` [rad/s or m/s]."""

    @abstractmethod
    def joint_efforts(self) -> Floats:
        """What is measured along the joints' axes `(n, dof)` [N·m or N]."""

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
    def lift_gravity(self) -> None:
        """Let gravity pull at no link."""


class CameraHandle(PrimHandle):
    """Cameras; they look along their -z axis, +y is up in the picture."""

    @abstractmethod
    def picture(self, annotator: str) -> NDArray[Any] | None:
        """`(n, height, width, channels)` of the last frame that was rendered; None or empty before the first."""


class IsaacSim(ABC):
    """A stage with physics. One exists at a time."""

    @property
    @abstractmethod
    def physics_scene(self) -> str:
        """Its prim path."""

    @abstractmethod
    def new_stage(self) -> None:
        """Start over with an empty stage."""

    @abstractmethod
    def add_frame(self, path: str, position: Any, orientation: Any = None, scale: Any = None) -> None:
        """Add a prim that places what is below it, relative to its parent."""

    @abstractmethod
    def add_asset(self, file: str, path: str) -> None:
        """Refer to a USD file."""

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
        """Make physics of what is on the stage."""

    @abstractmethod
    def step(self) -> None:
        """One substep, nothing is rendered."""

    @abstractmethod
    def render(self) -> None:
        """Render what cameras and windows show; physics stands still."""

    @abstractmethod
    def articulations(self, paths: Sequence[str]) -> ArticulationHandle:
        """Articulations at or below some prims."""

    @abstractmethod
    def bodies(self, paths: Sequence[str], *, contacts: bool = False) -> BodyHandle:
        """Rigid bodies; with `contacts`, their contact forces are measured, and `start` has to come later."""

    @abstractmethod
    def prims(self, paths: Sequence[str]) -> PrimHandle:
        """Prims that do not move under physics."""

    @abstractmethod
    def cameras(self, paths: Sequence[str], size: Size, annotators: Sequence[str], *, added: bool) -> CameraHandle:
        """Cameras whose pictures have `size` (width, height) [pixels].

        Those of assets show the whole width of their film; those that were `added` their whole vertical field of view.
        """

    @abstractmethod
    def close(self) -> None:
        """Leave the stage; the app goes on."""

    def __init__(self, names: SimpleNamespace, camera_class: str, dt: float, config: SimConfig):
        self.names = names
        self.camera_class = camera_class  # where it is found: its extension may come later than the others
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
        """Let nothing of one env collide with anything of another."""
        cloner = self.names.GridCloner(spacing=0.0)
        cloner.filter_collisions(
            physicsscene_path=self.physics_scene,
            collision_root_path='/collisionGroups',  # outside of what is left to replication
            prim_paths=list(paths),
            global_paths=[],
        )


def start_isaac_sim(config: SimConfig, dt: float) -> IsaacSim:
    """Start the app, unless it runs, and pick the names.

    ImportError, naming versions and the way to install, if there is no Isaac Sim. ValueError for a device or renderer
    that it does not have.
    """
    global _app
    if config.renderer != 'auto':
        raise ValueError(f"SimConfig.renderer={config.renderer!r}: backend 'isaac_sim' draws with RTX, use 'auto'")
    if not re.fullmatch(r'cpu|cuda(:\d+)?', config.device):
        raise ValueError(f"SimConfig.device={config.device!r}: backend 'isaac_sim' runs on 'cpu' or 'cuda:<number>'")
    if _app is None:
        _app = _start_app(config)
    generation, names = load_names()
    if generation == 'experimental':
        from internutopia.core.world.isaac.experimental import ExperimentalSim as Sim
    else:
        from internutopia.core.world.isaac.legacy import LegacySim as Sim
    return Sim(names, CAMERAS[generation], dt, config)


def load_names() -> tuple[str, SimpleNamespace]:
    """The newest set of names that is there, and what its names stand for."""
    missing: list[str] = []
    for generation, table in NAMES.items():
        try:
            return generation, SimpleNamespace(**{name: look_up(place) for name, place in table.items()})
        except (ImportError, AttributeError) as error:
            missing.append(str(error))
    raise ImportError(f'this Isaac Sim is none of {VERSIONS}; missing in their names: {"; ".join(missing)}')


def look_up(place: str) -> Any:
    """What a `module:attribute` stands for; the module itself without an attribute."""
    module, _, attribute = place.partition(':')
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def _start_app(config: SimConfig) -> Any:
    """Isaac Sim's app; it has to run before anything else of Isaac Sim can be imported."""
    gpu = int(config.device.partition(':')[2] or 0)
    launch_config = {
        'headless': config.headless or config.webrtc,
        'multi_gpu': False,  # several GPUs in one renderer are not faster for small pictures, and break tiled ones
        'active_gpu': gpu,
        'physics_gpu': gpu,
    }
    arguments, sys.argv = sys.argv, sys.argv[:1]  # else Isaac Sim takes those of this program for its own
    try:
        app = _app_class()(launch_config=launch_config)
    finally:
        sys.argv = arguments
    atexit.register(app.close)
    if config.webrtc:
        app.set_setting('/app/window/drawMouse', True)
        _, names = load_names()
        enable = getattr(names, 'extensions', None) or names.app
        enable.enable_extension(_LIVESTREAM)
    if config.native:
        log.warning('SimConfig.native is deprecated and has no effect: stream with SimConfig.webrtc')
    return app


def _app_class() -> Any:
    for place in _APPS:
        try:
            return look_up(place)
        except (ImportError, AttributeError):
            continue
    raise ImportError(
        f"backend 'isaac_sim' needs Isaac Sim ({VERSIONS}) in this Python: "
        "pip install 'isaacsim[all]==5.1.0', with NVIDIA's package index as --extra-index-url"
    )
