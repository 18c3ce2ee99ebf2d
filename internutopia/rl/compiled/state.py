"""Traced state: the `RobotState` that terms get while they are traced.

It is made of the same views as the real one, over a batch whose arrays are traced: so reading a pose, or moving a
velocity to another frame, becomes part of the kernel, too. What is not a function of these arrays is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.articulation import IArticulation
from internutopia.core.robot.controller import BaseController
from internutopia.engines.base import EnvIds, World
from internutopia.engines.batched.articulation import MujocoArticulationView
from internutopia.engines.batched.bodies import MujocoBodyView
from internutopia.engines.batched.env_batch import EnvBatch, Index
from internutopia.engines.setter_checks import TargetCheck
from internutopia.rl.compiled.kernel import Inputs
from internutopia.rl.compiled.nodes import UntraceableError
from internutopia.rl.compiled.traced import Traced, TracedArrays
from internutopia.rl.env_random import EnvRandom
from internutopia.rl.state import RobotState

_FIRST = slice(0, 1)  # the one row of traced arrays
_FACTS = 'name', 'feet', 'base_link', 'config'  # of a robot, that stay the same
_PER_ENV = 'steps', 'actions', 'last_actions', 'start_positions', 'task_ids'  # arrays that stay the same objects


class TracedBatch:
    """The arrays of a batch, traced; what a kernel may read and write of `BatchArrays`."""

    def __init__(self, batch: EnvBatch, inputs: Inputs):
        self.id, self.scene = batch.id, batch.scene
        self.occupied = _FIRST, _FIRST
        self._batch, self._inputs = batch, inputs
        self._found: dict[Hashable, Traced] = {}

    def efforts(self) -> Traced:
        """See `BatchArrays`."""
        return self._array('efforts', self._batch.efforts)

    def sensors(self) -> Traced:
        """See `BatchArrays`."""
        return self._array('sensors', self._batch.sensors)

    def measured(self) -> Traced:
        """See `BatchArrays`."""
        return self._array('measured', self._batch.measured)

    def read(self, name: str) -> Traced:
        """See `BatchArrays`."""
        return self._array(('field', name), lambda: self._batch.read(name))

    def write(self, name: str) -> Traced:
        """See `BatchArrays`."""
        return self._array(('written', name), lambda: self._batch.write(name), written=True)

    def _array(self, key: Hashable, get: Callable[[], NDArray[Any]], written: bool = False) -> Traced:
        if key not in self._found:
            self._found[key] = self._inputs.add(get, by_slot=True, written=written)
        return self._found[key]


class TracedWorld:
    """The world of one env, any of those of a batch: what views see of it (`ViewContext`), and terms."""

    env_num = 1
    version = 0
    placement = b'traced'

    def __init__(self, batch: EnvBatch, inputs: Inputs):
        self.arrays = TracedArrays()
        self.env_batches = [TracedBatch(batch, inputs)]
        self.batch_id, self.slot = np.array([batch.id]), np.zeros(1, np.intp)
        self._views: dict[str, MujocoBodyView] = {}

    def batch_arrays(self, env_batch: TracedBatch) -> TracedBatch:
        """Return the arrays that views read."""
        return env_batch

    def upload(self, index: Index) -> Index:
        """Return an index unchanged."""
        return index

    def articulation(self, name: str, env_id: int) -> MujocoArticulationView:
        """Return the view of an object's joints."""
        layout = self.env_batches[0].scene.articulation(name)
        if layout is None:
            raise UntraceableError(f'its envs have no {name}')
        context: Any = self
        return MujocoArticulationView(context, layout)

    def body_names(self, env_id: int) -> tuple[str, ...]:
        """Return the names of objects and bodies of the scene."""
        return tuple(self.env_batches[0].scene.bodies)

    def body(self, name: str, env_id: int) -> MujocoBodyView:
        """Return the view of an object or body of the scene."""
        if name not in self._views:
            context: Any = self  # it has what reading needs
            self._views[name] = MujocoBodyView(context, name, lambda scene: scene.bodies.get(name))
        return self._views[name]


class TracedRobot:
    """The attributes of a robot that terms and controllers may read."""

    def __init__(self, robot: Any, articulation: IArticulation):
        self.articulation = articulation
        for name in _FACTS:
            setattr(self, name, getattr(robot, name))


class TracedScene:
    """The attributes of the scene that controllers may read."""

    env_id = ...

    def __init__(self, world: World):
        self.world = world


class TracedTargetCheck(TargetCheck):
    """Flag for the targets that a `TargetCheck` is for, since a kernel cannot log.

    Args:
        view: the articulation.
        flag: traced bool `(1, 1)`, set where a target is out of bounds.
    """

    def __init__(self, view: MujocoArticulationView, flag: Traced):
        super().__init__(view)
        self._flag = flag

    @override
    def check(self, env_ids: EnvIds, targets: Any, joints: Any) -> None:
        self._flag |= (np.abs(targets) > self.bounds[joints]).any(axis=-1, keepdims=True)


class TracedState(RobotState):
    """The state of the robot in one env, any of those of a batch.

    Args:
        state: the real one.
        batch: whose envs they are.
        inputs: learns what is read.
    """

    def __init__(self, state: RobotState, batch: EnvBatch, inputs: Inputs):
        world: Any = TracedWorld(batch, inputs)
        rng = EnvRandom(1, inputs.add(state.rng.counters, written=True))
        super().__init__(world, state.step_dt, rng, 0, state.tasks)
        for name in _PER_ENV:
            setattr(self, name, inputs.add(getattr(state, name)))
        self.levels = inputs.add(lambda: state.levels)
        self.action_offset, self.action_scale = state.action_offset, state.action_scale
        self.elevation = state.elevation
        self._commands = _Inputs(inputs, state.command)
        self.episode_values = _Inputs(inputs, state.episode_value, written=True)
        real, layout = state.articulation, batch.scene.articulation(state.articulation.name)
        assert layout is not None
        view = MujocoArticulationView(world, layout)
        articulation = IArticulation(view, world, ..., real.name, real.prim_path)
        robot: Any = TracedRobot(state.robot, articulation)
        self._attach(robot, articulation, state.base_link)
        self.home = state.home
        self._env_id = 0

    @override
    def lasting(self, name: Any, compute: Callable[[], Any]) -> Any:
        raise UntraceableError('it has state that may differ between envs')

    def controller(self, real: BaseController) -> BaseController:
        """Return a controller like a real one, of the traced robot."""
        scene: Any = TracedScene(self.world)
        return type(real)(real.config, self.robot, scene)

    def traced(self, function: Callable[[RobotState], Any]) -> Any:
        """Return the result of a term on this state. Raises an exception if the term cannot be compiled."""
        rng, self.rng = self.rng, None  # a term that samples fails here, and is called uncompiled
        try:
            return function(self)
        finally:
            self.rng = rng


class _Inputs(dict[str, Any]):
    """Arrays by name that become inputs at first access."""

    def __init__(self, inputs: Inputs, get: Callable[[str], NDArray[Any]], written: bool = False):
        super().__init__()
        self._inputs, self._get, self._written = inputs, get, written

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> Traced:
        self[name] = self._inputs.add(lambda: self._get(name), written=self._written)
        return self[name]
