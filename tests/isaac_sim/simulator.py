"""Simulator: what the modules of one Isaac Sim process share: its stage, physics, cameras, and calls that were counted.

There is at most one, `current()`: a test starts it by installing the modules (see `isaac_sim.install`).
"""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from pxr import Usd, UsdGeom, UsdPhysics

from internutopia.engines.physx import runtime

_current: list[Simulator] = []
_NAMES = itertools.count()


class Camera(Protocol):
    """Something that takes a picture when a frame is rendered."""

    def take_picture(self) -> None: ...


class Simulator:
    """The state of an Isaac Sim process of some version.

    `calls` counts what tests ask for: apps, frames, physics steps, stages, plays.
    """

    def __init__(self, version: str):
        self.version = version
        self.calls: Counter[str] = Counter()
        self.app: Any = None
        self.world: Any = None
        self.steps_per_second = 60
        self.rendering_dt = 1 / 60
        self.extensions: list[str] = []
        self.at_exit: list[Callable[[], None]] = []
        self.fabric = False
        self.physics: Physics | None = None
        self.new_stage()

    @property
    def legacy(self) -> bool:
        """Whether this is a 5.x."""
        return int(self.version.split('.')[0]) < 6

    @property
    def dt(self) -> float:
        """Length of a physics step [s]."""
        return 1.0 / self.steps_per_second

    def set_dt(self, dt: float) -> None:
        """What the engine keeps is an integer number of steps per second, which rounding can make one less."""
        self.steps_per_second = int(1.0 / dt)

    def new_stage(self) -> Usd.Stage:
        """An empty stage; nothing of the old one is left, not even the instance of World."""
        self.stop()
        self.stage = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        UsdPhysics.SetStageKilogramsPerUnit(self.stage, 1.0)
        self.stage.DefinePrim('/World', 'Xform')
        self.cameras: weakref.WeakSet[Camera] = weakref.WeakSet()
        self.world = None
        self.calls['stages'] += 1
        return self.stage

    def play(self) -> None:
        """Start physics from what the stage says."""
        if self.physics is not None:
            return
        self.calls['plays'] += 1
        self.physics = Physics(self.stage)
        if not self.legacy:  # it is stepped before and after views are made
            self.physics.step(self.dt)
            self.physics.step(self.dt)

    def stop(self) -> None:
        """End physics."""
        if self.physics is not None:
            self.physics.close()
            self.physics = None

    def running_physics(self) -> Physics:
        """Physics of a stage that is played. RuntimeError if it is stopped."""
        if self.physics is None:
            raise RuntimeError('Physics Simulation View is not created yet: the simulation is stopped')
        return self.physics

    def step(self, steps: int = 1) -> None:
        """Physics alone."""
        for _ in range(steps):
            self.calls['steps'] += 1
            self.running_physics().step(self.dt)

    def render(self) -> None:
        """A frame alone."""
        self.calls['frames'] += 1
        for camera in list(self.cameras):
            camera.take_picture()


class Physics:
    """PhysX on a copy of a stage, by `ovphysx`."""

    def __init__(self, stage: Usd.Stage):
        runtime._start('cpu')
        import ovstage
        from ovphysx import PhysX

        self._stage = ovstage.Stage(f'isaac-sim-{next(_NAMES)}')
        self.physx = PhysX()
        text = stage.Flatten().ExportToString()
        ovstage.population.open_usd_from_string(self._stage, text, ordinal=1, domains=ovstage.PopulationDomain.ALL)
        self._stage.advance_write_floor(ordinal=1).wait()
        self.physx.wait_task(self.physx.attach_ovstage(self._stage, read_ordinal=1))
        self.physx.warmup()
        self.open: list[Any] = []  # what is to be closed first

    def step(self, dt: float) -> None:
        """Make a step."""
        self.physx.step_sync(dt)

    def close(self) -> None:
        """Let go of PhysX."""
        for each in self.open:
            each.close()
        self.open.clear()
        self.physx.wait_task(self.physx.detach_ovstage())
        self._stage.destroy()
        self.physx.destroy()


def current() -> Simulator:
    """The simulator of the test that runs."""
    return _current[0]


def start(version: str) -> Simulator:
    """A new one."""
    if _current:
        _current.pop().stop()
    _current.append(Simulator(version))
    return _current[0]
