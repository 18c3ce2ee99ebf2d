"""App of Isaac Sim: its stage, its physics steps, its frames, whatever its version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from typing_extensions import override

from internutopia.config import SimConfig


class IsaacSim:
    """Isaac Sim 6.x: a stage with physics, behind a `SimulationManager`. One exists at a time.

    Args:
        names: objects of Isaac Sim by their names in `launch.NAMES`.
        load_camera_class: returns the class of cameras; called late, as its extension may come after the others.
        dt: length of a physics step [s].
        config: of the simulator.
    """

    has_raw_contacts = True  # contacts are reported without naming what is touched

    def __init__(self, names: SimpleNamespace, load_camera_class: Callable[[], Any], dt: float, config: SimConfig):
        self.names = names
        self.load_camera_class = load_camera_class
        self.dt = dt
        self.config = config
        self.gpu = config.device != 'cpu'

    @property
    def stage(self) -> Any:
        """The stage, a `pxr.Usd.Stage`."""
        return self.names.stage.get_current_stage()

    @property
    def physics_scene(self) -> str:
        """Prim path of the physics scene."""
        return self.names.SimulationManager.get_physics_scenes()[0].path

    def new_stage(self) -> None:
        """Start over with a stage on which there is nothing but a physics scene."""
        names = self.names
        names.app.stop()
        names.stage.create_new_stage()
        names.stage.set_stage_up_axis('Z')
        names.stage.set_stage_units(meters_per_unit=1.0)
        names.SimulationManager.setup_simulation(dt=self.dt, device=self.config.device)
        names.RenderingManager.set_dt(float(self.config.rendering_dt))
        if self.config.use_fabric:
            names.SimulationManager.enable_fabric(True)

    def start(self) -> None:
        """Start physics with the prims on the stage."""
        self.names.app.play()
        self.names.app.update_app(steps=1)

    def simulation_view(self) -> Any:
        """Return the tensors of the physics that runs."""
        return self.names.create_simulation_view('torch' if self.gpu else 'numpy')

    def step(self) -> None:
        """Make one physics step without rendering."""
        self.names.SimulationManager.step(steps=1)

    def render(self) -> None:
        """Render what cameras and windows show; physics stands still."""
        self.names.RenderingManager.render()

    def cameras(self, paths: Sequence[str], size: tuple[int, int], annotators: Sequence[str]) -> Any:
        """Return a sensor for images of `size` (width, height) [pixels] by cameras, in the order of the paths.

        Its `get_data` returns `(cameras, height, width, channels)` of the last frame.
        """
        return self.load_camera_class()(list(paths), resolution=(size[1], size[0]), annotators=list(annotators))

    def close(self) -> None:
        """Release the stage; the app keeps running."""
        self.names.app.stop()


class LegacySim(IsaacSim):
    """Isaac Sim 5.x: a stage behind a `World`."""

    has_raw_contacts = False
    _world: Any

    @property
    @override
    def physics_scene(self) -> str:
        return '/physicsScene'

    @override
    def new_stage(self) -> None:
        names = self.names
        names.World.clear_instance()  # else the next one is the same
        names.stage.create_new_stage()
        self._world = names.World(
            physics_dt=self.dt,
            rendering_dt=float(self.config.rendering_dt),
            stage_units_in_meters=1.0,
            physics_prim_path=self.physics_scene,
            backend='numpy',
            device=self.config.device,
        )
        if self.config.use_fabric:
            self._world.get_physics_context().enable_fabric(True)

    @override
    def start(self) -> None:
        self._world.reset()

    @override
    def step(self) -> None:
        self._world.step(render=False)

    @override
    def render(self) -> None:
        self._world.render()

    @override
    def cameras(self, paths: Sequence[str], size: tuple[int, int], annotators: Sequence[str]) -> Any:
        sensor = self.load_camera_class()(
            prim_paths_expr=list(paths),
            name=f'internutopia {paths[0]}',
            camera_resolution=size,
            output_annotators=list(annotators),
            reset_xform_properties=False,
        )
        sensor.initialize()
        return sensor

    @override
    def close(self) -> None:
        self._world.stop()
        self.names.World.clear_instance()
