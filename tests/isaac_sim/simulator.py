"""Simulator: what the modules of one Isaac Sim process share, its stage, whether physics runs, views, cameras, calls.

There is at most one, `current()`: a test starts it by installing the modules (see `isaac_sim.install`).
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from pxr import Tf, Usd, UsdGeom

from isaac_sim import stage as stages
from isaac_sim.physics import Physics

_current: list[Simulator] = []


class PhysicsView(Protocol):
    """Something that looks at physics, and is told when physics is there."""

    def _physics_ready(self) -> None: ...


class Camera(Protocol):
    """Something that takes a picture when a frame is rendered."""

    def take_picture(self) -> None: ...


class Simulator:
    """The state of an Isaac Sim process of some version.

    `calls` counts what tests ask for: frames, physics steps, stages, plays, clones. `replicated`: the source of each of
    the clones that physics replicates, by the path below which it parses nothing else; a source is its own.
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
        self.stage: Usd.Stage
        self.new_stage()

    @property
    def legacy(self) -> bool:
        """Whether this is a 4.x or 5.x."""
        return int(self.version.split('.')[0]) < 6

    @property
    def dt(self) -> float:
        """Length of a physics step [s]."""
        return 1.0 / self.steps_per_second

    @property
    def playing(self) -> bool:
        """Whether physics runs."""
        return self.physics is not None

    def set_dt(self, dt: float) -> None:
        """What the engine keeps is an integer number of steps per second, which rounding can make one less."""
        self.steps_per_second = int(1.0 / dt)

    def new_stage(self) -> Usd.Stage:
        """An empty stage; nothing of the old one is left, not even the instance of World."""
        self.physics: Physics | None = None
        self.stage = Usd.Stage.CreateInMemory()
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.z)
        self.stage.DefinePrim('/World', 'Xform')
        self._listener = Tf.Notice.Register(Usd.Notice.ObjectsChanged, self._stage_changed, self.stage)
        self.views: weakref.WeakSet[PhysicsView] = weakref.WeakSet()
        self.cameras: weakref.WeakSet[Camera] = weakref.WeakSet()
        self.tracked: set[str] = set()
        self.replicated: dict[str, dict[str, str]] = {}
        self.filtered: list[str] = []
        self.world = None
        self.calls['stages'] += 1
        return self.stage

    def play(self) -> None:
        """Start physics from what the stage says."""
        if self.playing:
            return
        self.calls['plays'] += 1
        self.physics = Physics(self.stage, self._source, self.tracked, self.dt)
        self.physics.read_stage()
        if not self.legacy:  # it is stepped before and after views are made
            self.physics.step()
            self.physics.step()
        self.tell_views()

    def tell_views(self) -> None:
        """Physics is ready: views that can look at it do so."""
        for view in list(self.views):
            view._physics_ready()

    def stop(self) -> None:
        """End physics: what moved is where the stage has it."""
        if self.physics is not None:
            self.physics.world.close()
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
            self.running_physics().step()

    def update(self) -> None:
        """An update of the app: as many physics steps as the time of a frame holds, and the frame."""
        if self.playing:
            self.step(max(1, round(self.rendering_dt / self.dt)))
        self.render()

    def render(self) -> None:
        """A frame: all cameras take their pictures."""
        self.calls['frames'] += 1
        for camera in list(self.cameras) if self.playing else ():
            camera.take_picture()

    def paths(self, patterns: str | Iterable[str], match: Callable[[str, str], bool]) -> list[str]:
        """The prims that patterns of paths name."""
        patterns = [patterns] if isinstance(patterns, str) else patterns
        return [path for pattern in patterns for path in stages.matching(self.stage, match, pattern)]

    def _source(self, path: str) -> str | None:
        """Where physics reads a prim: a replica's is that of its source, whatever the stage says of the replica.

        None for what it does not read: everything else below the base of a replication.
        """
        for base, sources in self.replicated.items():
            if path.startswith(f'{base}/'):
                return next((source for replica, source in sources.items() if is_below(path, replica)), None)
        return path

    def _stage_changed(self, notice: Usd.Notice.ObjectsChanged, _: Usd.Stage) -> None:
        if self.physics is None:
            return
        if any(path.IsPrimPath() for path in notice.GetResyncedPaths()):
            self.physics.stale = True
            return
        changed = [*notice.GetResyncedPaths(), *notice.GetChangedInfoOnlyPaths()]
        for path in {str(path.GetPrimPath()) for path in changed if path.name.startswith('xformOp:')}:
            self.physics.follow(path)


def is_below(path: str, root: str) -> bool:
    """Whether a prim is that at `root`, or below it."""
    return path == root or path.startswith(f'{root}/')


def current() -> Simulator:
    """The simulator of the running test."""
    return _current[-1]


def start(version: str) -> Simulator:
    """A new process of some version of Isaac Sim."""
    _current[:] = [Simulator(version)]
    return _current[-1]
