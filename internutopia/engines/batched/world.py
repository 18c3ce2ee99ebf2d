"""Batched world: envs that are stepped in batches, one per model structure, whatever the engine.

Envs whose models have the same structure share an `EnvBatch`; what differs between them is held per slot. Different
structures form several batches.

The engine's own objects: `world.model(env_id)` and `world.data(env_id)` are snapshots to inspect or to render.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

import mujoco
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.config.simulator import AssetLimitsCfg, ContactCfg
from internutopia.engines.base import PhysicsState, PhysicsStates, SceneHandle, World
from internutopia.engines.batched.articulation import MujocoArticulationView
from internutopia.engines.batched.bodies import MujocoBodyView
from internutopia.engines.batched.cameras import MujocoCameraView
from internutopia.engines.batched.env_batch import (
    BatchArrays,
    EnvBatch,
    Index,
    Slots,
    as_index,
    flag_fault,
    model_state,
    read_flags,
    scene_flags,
    slots_by_batch,
)
from internutopia.engines.batched.view import View
from internutopia.engines.views import EnvIds
from internutopia.model.asset_files import limited_by
from internutopia.model.compiled import CompiledScene
from internutopia.model.scene_cache import SCENES
from internutopia.model.semantics import SceneLabels
from internutopia.model.spec import SceneSpec
from internutopia.rendering.camera import Quality, RenderRequest
from internutopia.rendering.renderer import EnvSnapshot, RendererPool
from internutopia.util import did_you_mean
from internutopia.util.arrays import ArrayMaker, HostArrays, to_host
from internutopia.util.errors import EnvKeyError, EnvValueError
from internutopia.util.log import warn
from internutopia.util.memory import return_free_memory

T = TypeVar('T')
ViewT = TypeVar('ViewT', bound=View)

_EMPTY_BATCHES_KEPT = 16  # a scene that comes back soon finds its batch ready
_VIEWS_KEPT = 256
_ROUNDING = 1e-6  # a physics step that is this much longer than whole time steps takes no more of them


class BatchedWorld(World):
    """`env_num` envs; a step is `substeps` times `dt` [s], `threads` None means all cores.

    The engine integrates each `dt` in equal time steps of at most `max_timestep` [s]. `contact`, `asset_limits`: see
    `SimConfig`.
    """

    engine: str  # with its version

    def __init__(
        self,
        env_num: int,
        env_origins: NDArray[np.float64],
        dt: float,
        substeps: int = 1,
        threads: int | None = None,
        render_quality: Quality = 'fast',
        max_timestep: float = math.inf,
        contact: ContactCfg | None = None,
        asset_limits: AssetLimitsCfg | None = None,
    ):
        self.env_num = env_num
        self.arrays: ArrayMaker = HostArrays()
        self.env_origins = env_origins
        self.dt = dt
        self.substeps = substeps
        parts = max(math.ceil(dt / max_timestep - _ROUNDING), 1)
        self.timestep = dt / parts  # [s], of the engine
        self.engine_steps = substeps * parts  # of one step
        self._contact = contact or ContactCfg()
        self._asset_limits = asset_limits or AssetLimitsCfg()
        self.times = np.zeros(env_num)
        self.noise_keys = np.zeros(env_num, np.uint64)
        self.threads = threads or os.cpu_count() or 1
        self.version = 0  # grows whenever any state may have changed: views cache by it
        self.slot = np.full(env_num, -1, np.intp)  # where in its batch each env lives
        self.batch_id = np.full(env_num, -1, np.intp)
        self.placement = b''  # both as bytes: what was found out about slots holds as long as these are the same
        self.env_batches: list[EnvBatch] = []
        self.scenes: list[CompiledScene | None] = [None] * env_num  # that each env runs
        self._env_batch: list[EnvBatch | None] = [None] * env_num
        self._breakable: set[int] = set()  # envs with joints that may break
        self._views: dict[tuple[object, ...], View] = {}
        self.render_quality: Quality = render_quality
        self._renderers = RendererPool(self.threads, render_quality)
        self.rendered_model: Callable[[CompiledScene], mujoco.MjModel] = lambda scene: scene.model
        self._stepped: list[tuple[EnvBatch, Slots | None]] = []
        self._stepped_envs: Index = slice(0)
        self._stepped_key = (b'', b'')
        if mujoco.get_mju_user_warning() is None:
            # else MuJoCo prints, and writes MUJOCO_LOG.TXT into the working directory
            mujoco.set_mju_user_warning(lambda message: warn('MuJoCo: %s', message))

    @override
    def prepare(self, scene: SceneSpec) -> CompiledScene:
        """Compile a scene, or take it from the cache; ValueError also for initial joint positions of unknown joints."""
        if type(self)._break_joints is BatchedWorld._break_joints and any(joint.breakable for joint in scene.joints):
            raise NotImplementedError("only backend 'mujoco' has joints that break: omit break forces and torques")
        compiled = self._compiled(scene)
        compiled.check(scene)
        return compiled

    def _compiled(self, scene: SceneSpec) -> CompiledScene:
        with limited_by(self._asset_limits):
            return SCENES.get(scene, self.timestep, self._contact)

    @override
    def load(self, scenes: Mapping[int, tuple[SceneHandle, SceneSpec]]) -> None:
        states: dict[int, dict[str, NDArray[np.float64]]] = {}  # by scene: many envs may start in the very same one
        by_structure: dict[bytes, list[tuple[int, CompiledScene, int]]] = {}
        for env_id, (handle, scene) in scenes.items():
            compiled = cast(CompiledScene, handle)
            if id(scene) not in states:
                states[id(scene)] = compiled.initial_state(scene)
            by_structure.setdefault(self._structure(compiled), []).append((env_id, compiled, id(scene)))
        self._free(scenes)
        for structure, starts in by_structure.items():
            env_batch = self._env_batch_for(structure, starts[0][1], len(starts))
            for env_id, compiled, state in starts:
                self._add_env(env_id, env_batch, compiled, states[state])
        self.times[list(scenes)] = 0.0
        self._clean_up()

    @override
    def unload(self, env_ids: EnvIds) -> None:
        self._free(env_ids.tolist())
        self._update_placement()

    @override
    def step(self, env_ids: EnvIds) -> dict[int, str]:
        stepped = self._begin_step(env_ids)
        if len(stepped) == 1:
            env_batch, slots = stepped[0]
            failed = env_batch.step(slots, self.engine_steps)
        else:
            calls = [(batch, functools.partial(batch.step, slots, self.engine_steps)) for batch, slots in stepped]
            failed = dict(itertools.chain.from_iterable(each.items() for each in self.run_batches(calls)))
        if self._breakable:
            for env_id in self._breakable.intersection(env_ids.tolist()) - failed.keys():
                self._break_joints(env_id)
        return failed

    def set_self_collisions(self, robot: str, env_ids: EnvIds, enabled: bool) -> None:
        """Let links of a robot collide with each other, or not; the state of these envs stays, bit for bit."""
        for env_id in np.asarray(env_ids).tolist():
            old, scene = self.scene(env_id), self._variant(env_id, {robot: enabled})
            if scene.digest != old.digest:
                state = self._env_batch_of(env_id).get_state(int(self.slot[env_id]), old)
                self._move(env_id, scene, scene.source)
                self._env_batch_of(env_id).set_state(int(self.slot[env_id]), scene, state)

    @override
    def get_state(self, env_id: int) -> PhysicsState:
        scene, env_batch = self.scene(env_id), self._env_batch_of(env_id)
        arrays = {'time': self.times[[env_id]], **env_batch.get_state(int(self.slot[env_id]), scene)}
        return PhysicsState(scene.digest, {**arrays, **scene_flags(scene)})

    @override
    def get_states(self, env_ids: EnvIds) -> list[PhysicsStates]:
        states: list[PhysicsStates] = []
        times = to_host(self.times)
        for env_batch, slots in slots_by_batch(self.env_batches, env_ids):
            own = env_batch.envs if slots is None else env_batch.envs[slots]
            models = env_batch.model_states(
                np.arange(env_batch.capacity) if slots is None else slots,
                [self.scene(env_id) for env_id in own.tolist()],
                model_state,
            )
            rows = env_batch.get_states(slice(None) if slots is None else slots)
            states.append(PhysicsStates(own, {'time': times[own, None], **rows}, models))
        return states

    @override
    def check_compatible(self, env_id: int, state: PhysicsState) -> str | None:
        scene, env_batch = self.scene(env_id), self._env_batch_of(env_id)
        own = scene_flags(scene)
        if not own.keys() & state.misfits(own):
            if fault := flag_fault(state):
                return fault
            there = self._scene_in(env_id, state)
            if state.model != there.digest:
                return (
                    'its models are not those that the state was taken from: an asset file is another one, or objects '
                    'or joints were added to one of them while it ran'
                )
            if (structure := self._structure(there)) != env_batch.structure:
                env_batch = self._env_batch_for(structure, there, 1)
        own['time'] = to_host(self.times[[env_id]])
        if wrong := state.misfits(own | env_batch.layout(state.arrays)):
            return f'{self.engine} lays out states in another way than what saved it: {", ".join(wrong)}'
        return None

    @override
    def set_state(self, env_id: int, state: PhysicsState) -> None:
        scene = self._scene_in(env_id, state)
        if scene.digest != self.scene(env_id).digest:
            self._move(env_id, scene, scene.source)
        env_batch = self._env_batch_of(env_id)
        env_batch.set_state(int(self.slot[env_id]), self.scene(env_id), state.arrays)
        self.times[env_id] = state.arrays['time'][0]
        self.version += 1

    @override
    def articulation(self, name: str, env_id: int) -> MujocoArticulationView:
        """KeyError with close matches."""
        scene = self.scene(env_id)
        layout = scene.articulation(name)
        if layout is None:
            raise EnvKeyError(env_id, f'env {env_id} has {scene.no_articulation(name)}')
        return self._view(('robot', name, layout.signature), lambda: MujocoArticulationView(self, layout))

    @override
    def body(self, name: str, env_id: int) -> MujocoBodyView:
        """KeyError with close matches."""
        bodies = self.scene(env_id).bodies
        if name not in bodies:
            raise EnvKeyError(env_id, f'env {env_id} has no movable body {name!r}; {did_you_mean(name, bodies)}')
        return self._view(('body', name), lambda: MujocoBodyView(self, name, lambda scene: scene.bodies.get(name)))

    @override
    def body_names(self, env_id: int) -> tuple[str, ...]:
        return tuple(self.scene(env_id).bodies)

    @override
    def camera(self, robot: str | None, path: str, env_id: int) -> MujocoCameraView:
        name = self.scene(env_id).camera_name(robot, path)
        return self._view(('camera', name), lambda: self._new_camera_view(name))

    @override
    def render(self, requests: Sequence[RenderRequest], quality: Quality | None = None) -> None:
        self._renderers.render(requests, quality, self._snapshot)

    def capture(self, env_ids: EnvIds) -> Callable[[Sequence[RenderRequest]], None]:
        """Return a function that renders images of envs as they are now."""
        snapshots: dict[int, EnvSnapshot] = {}
        for env_id in env_ids.tolist():
            model, state, labels = self._snapshot(env_id)
            snapshots[env_id] = model, state.copy(), labels
        return lambda requests: self._renderers.render(requests, None, snapshots.__getitem__)

    @override
    def labels(self, env_id: int) -> SceneLabels:
        return self.scene(env_id).labels

    def _view(self, key: tuple[object, ...], make: Callable[[], ViewT]) -> ViewT:
        """Return the view of this key; `make` makes it when it is first requested."""
        if key not in self._views:
            self._views[key] = make()
        return cast(ViewT, self._views[key])

    def scene(self, env_id: int) -> CompiledScene:
        """Return the compiled scene that an env runs; ValueError if it runs none."""
        scene = self.scenes[env_id]
        if scene is None:
            raise EnvValueError(env_id, f'env {env_id} has no scene: reset it first')
        return scene

    def model(self, env_id: int) -> mujoco.MjModel:
        """Return a copy of the model that an env runs, with everything that was changed for this env."""
        return self._env_batch_of(env_id).model(int(self.slot[env_id]), self.scene(env_id))

    def data(self, env_id: int) -> mujoco.MjData:
        """Return a snapshot of an env's state, with the quantities that follow from it computed."""
        data = self._env_batch_of(env_id).data(int(self.slot[env_id]))
        mujoco.mj_fwdPosition(self.model(env_id), data)
        return data

    def full_state(self, env_id: int) -> NDArray[np.float64]:
        """Return a copy of an env's state as MuJoCo has it, `mjSTATE_INTEGRATION`."""
        return self._env_batch_of(env_id).full_state(int(self.slot[env_id])).copy()

    def run_batches(self, calls: Sequence[tuple[BatchArrays, Callable[[], T]]]) -> list[T]:
        """Make calls of batches and return their results, in no particular order."""
        return [call() for _, call in calls]

    @override
    def close(self) -> None:
        self.unload(np.arange(self.env_num))
        self.env_batches.clear()
        self._stepped.clear()
        for view in self._views.values():
            view.close()
        self._views.clear()
        self._renderers.close()
        return_free_memory()

    def _snapshot(self, env_id: int) -> EnvSnapshot:
        scene = self.scene(env_id)
        state = self._env_batch_of(env_id).full_state(int(self.slot[env_id]))
        return self.rendered_model(scene), state, scene.labels.geom_labels

    def _variant(
        self, env_id: int, self_collisions: Mapping[str, bool | None], broken: Sequence[bool] | None = None
    ) -> CompiledScene:
        """Return the scene of an env with other self-collisions of its robots, and with what joints are broken."""
        scene = self.scene(env_id)
        source = scene.source_with(self_collisions, broken)
        return scene if source == scene.source else self._compiled(source)

    def _scene_in(self, env_id: int, state: PhysicsState) -> CompiledScene:
        """Return the scene of an env, with self-collisions as they are in a state."""
        return self._variant(env_id, *read_flags(self.scene(env_id), state))

    def _move(self, env_id: int, scene: CompiledScene, start: SceneSpec) -> None:
        """Move an env into another scene, in which it starts as a spec of it says."""
        self._env_batch_of(env_id).remove(self.slot[env_id : env_id + 1])
        env_batch = self._env_batch_for(self._structure(scene), scene, 1)
        self._add_env(env_id, env_batch, scene, scene.initial_state(start))
        self._clean_up()

    def _free(self, env_ids: Iterable[int]) -> None:
        """Free the slots of envs; `_update_placement` has to follow."""
        for env_id in env_ids:
            env_batch = self._env_batch[env_id]
            if env_batch is not None:
                env_batch.remove(self.slot[env_id : env_id + 1])
                self._env_batch[env_id] = self.scenes[env_id] = None
                self.slot[env_id] = self.batch_id[env_id] = -1
                self._breakable.discard(env_id)

    def _add_env(
        self, env_id: int, env_batch: EnvBatch, scene: CompiledScene, state: Mapping[str, NDArray[np.float64]]
    ) -> None:
        """Start an env in a batch that has room for it."""
        self.slot[env_id] = env_batch.add(env_id, scene, state)
        self._env_batch[env_id] = env_batch
        self.batch_id[env_id] = env_batch.id
        self.scenes[env_id] = scene
        self._breakable.discard(env_id)
        for joint in scene.source.joints:
            if joint.breakable:
                self._breakable.add(env_id)

    def _break_joints(self, env_id: int) -> None:
        """Remove the joints of an env that carry too much."""
        raise NotImplementedError

    def _env_batch_of(self, env_id: int) -> EnvBatch:
        """Return the batch of an env; ValueError if it runs no scene."""
        self.scene(env_id)
        return cast(EnvBatch, self._env_batch[env_id])

    def batch_arrays(self, env_batch: EnvBatch) -> BatchArrays:
        """Return the arrays of a batch that views read and write."""
        return env_batch

    def upload(self, index: Index) -> Index:
        """Return an index that suits the arrays that views read and write."""
        return index

    def _new_camera_view(self, name: str) -> MujocoCameraView:
        """Return a view over the cameras of a name."""
        return MujocoCameraView(self, name)

    @abstractmethod
    def _new_env_batch(self, scene: CompiledScene, capacity: int) -> EnvBatch:
        """Return a batch for envs of the structure of a scene."""

    @abstractmethod
    def _structure(self, scene: CompiledScene) -> bytes:
        """Return a key that is equal for scenes whose envs can share a batch."""

    def _env_batch_for(self, structure: bytes, scene: CompiledScene, count: int) -> EnvBatch:
        """Return the batch of a structure, with room for `count` more envs."""
        for env_batch in self.env_batches:
            if env_batch.structure == structure:
                env_batch.reserve(count, self.env_num)
                return env_batch
        env_batch = self._new_env_batch(scene, count)
        env_batch.structure = structure
        self.env_batches.append(env_batch)
        return env_batch

    def _occupied(self) -> list[EnvBatch]:
        return [env_batch for env_batch in self.env_batches if env_batch.used]

    def _clean_up(self) -> list[EnvBatch]:
        """Drop the oldest empty batches, those of scenes that the cache dropped, and views of what is gone.

        Returns the batches that hold envs.
        """
        if len(occupied := self._occupied()) < len(self.env_batches):
            empty = [env_batch for env_batch in self.env_batches if not env_batch.used and env_batch.scene in SCENES]
            kept = [*occupied, *empty[-_EMPTY_BATCHES_KEPT:]]
            self.env_batches = [env_batch for env_batch in self.env_batches if env_batch in kept]
        self._update_placement()
        if len(self._views) > _VIEWS_KEPT:
            self._views = {key: view for key, view in self._views.items() if view.slices()}
        return occupied

    def _begin_step(self, env_ids: EnvIds) -> list[tuple[EnvBatch, Slots | None]]:
        """Advance the clocks of envs; returns their batches, with the slots that a step is for."""
        key = self.placement, env_ids.tobytes()
        if key != self._stepped_key:  # mostly the same envs step again and again
            self._stepped_key, self._stepped = key, slots_by_batch(self.env_batches, env_ids)
            self._stepped_envs = as_index(env_ids)
        self.version += 1
        self.times[self._stepped_envs] += self.step_dt
        return self._stepped

    def _update_placement(self) -> None:
        """Update `placement` after slots of envs have changed."""
        self.version += 1
        self.placement = self.slot.tobytes() + self.batch_id.tobytes()
