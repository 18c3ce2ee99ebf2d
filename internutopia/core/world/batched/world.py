"""Worlds whose envs are stepped in batches, one per model structure: what they share, whatever the engine.

Envs whose models have the same structure share a group (see `group.Group`); what differs between them is held per slot.
Different structures form several groups.

The engine's own objects: `world.model(env_id)` and `world.data(env_id)` are snapshots to look at or to render.
"""

from __future__ import annotations

import functools
import math
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.core.config.contact import ContactCfg
from internutopia.core.model.compiled import CompiledScene
from internutopia.core.model.scene_cache import SceneCache
from internutopia.core.model.spec import SceneSpec
from internutopia.core.render.camera import CameraPose, Frame, Quality, RenderRequest
from internutopia.core.util import did_you_mean, log
from internutopia.core.util.arrays import ArrayMaker, HostArrays
from internutopia.core.world.base import EnvIds, SavedPhysics, SceneHandle, World
from internutopia.core.world.batched.articulation import MujocoArticulationView
from internutopia.core.world.batched.bodies import MujocoBodyView
from internutopia.core.world.batched.cameras import MujocoCameraView
from internutopia.core.world.batched.env_batch import BatchArrays, EnvBatch, Index, Slots, as_index

if TYPE_CHECKING:
    from internutopia.core.render.renderer import Renderer

T = TypeVar('T')

# Scenes are cached for the whole process: a second Env of the same scenes starts at once
_SCENES = SceneCache()
_EMPTY_GROUPS_KEPT = 16  # a scene that comes back soon finds its batch ready
_VIEWS_KEPT = 256
_FLAGS = None, True, False  # of self-collisions: a number of each in saved states
_ROUNDING = 1e-6  # a physics step that is this much longer than whole time steps takes no more of them


class BatchedWorld(World):
    """`env_num` envs; a step is `substeps` times `dt` [s], `threads` None means all cores.

    The engine integrates each `dt` in equal time steps of at most `max_timestep` [s]. `contact`: see `SimConfig`.
    """

    engine: str  # with its version

    def __init__(
        self,
        env_num: int,
        offsets: NDArray[np.float64],
        dt: float,
        substeps: int = 1,
        threads: int | None = None,
        render_quality: Quality = 'fast',
        max_timestep: float = math.inf,
        contact: ContactCfg | None = None,
    ):
        self.env_num = env_num
        self.arrays: ArrayMaker = HostArrays()
        self.offsets = offsets
        self.dt = dt
        self.substeps = substeps
        parts = max(math.ceil(dt / max_timestep - _ROUNDING), 1)
        self.timestep = dt / parts  # [s], of the engine
        self.engine_steps = substeps * parts  # of one step
        self._contact = contact or ContactCfg()
        self.times = np.zeros(env_num)
        self.noise_keys = np.zeros(env_num, np.uint64)
        self.threads = threads or os.cpu_count() or 1
        self.version = 0  # grows whenever any state may have changed: views cache by it
        self.slot = np.full(env_num, -1, np.intp)  # where in its batch each env lives
        self.group_id = np.full(env_num, -1, np.intp)
        self.layout = b''  # both as bytes: what was found out about places holds as long as these are the same
        self.groups: list[EnvBatch] = []
        self._scene: list[CompiledScene | None] = [None] * env_num
        self._group: list[EnvBatch | None] = [None] * env_num
        self._views: dict[tuple[object, ...], MujocoArticulationView | MujocoBodyView | MujocoCameraView] = {}
        self.render_quality: Quality = render_quality
        self._renderers: dict[Quality, Renderer] = {}
        self._work: list[tuple[EnvBatch, Slots | None]] = []
        self._work_rows: Index = slice(0)
        self._work_key = (b'', b'')
        if mujoco.get_mju_user_warning() is None:
            # else MuJoCo prints, and writes MUJOCO_LOG.TXT into the working directory
            mujoco.set_mju_user_warning(lambda message: log.warning('MuJoCo: %s', message))

    def prepare(self, scene: SceneSpec) -> CompiledScene:
        """Compile a scene, or take it from the cache; ValueError also for initial joint positions of unknown joints."""
        compiled = _SCENES.get(scene, self.timestep, self._contact)
        compiled.check(scene)
        return compiled

    def load(self, scenes: Mapping[int, tuple[SceneHandle, SceneSpec]]) -> None:
        """Start envs afresh in their scenes."""
        compiled = {env_id: cast(CompiledScene, handle) for env_id, (handle, _) in scenes.items()}
        states: dict[int, dict[str, NDArray[np.float64]]] = {}  # by scene: many envs may start in the very same one
        for env_id, (_, scene) in scenes.items():
            if id(scene) not in states:
                states[id(scene)] = compiled[env_id].initial_state(scene)
        self.unload(np.array(sorted(scenes), np.intp))
        by_structure: dict[bytes, list[int]] = {}
        for env_id, handle in compiled.items():
            by_structure.setdefault(self._structure(handle), []).append(env_id)
        for structure, env_ids in by_structure.items():
            group = self._group_for(structure, compiled[env_ids[0]], len(env_ids))
            for env_id in env_ids:
                self._enter(env_id, group, compiled[env_id], states[id(scenes[env_id][1])])
        self.times[list(scenes)] = 0.0
        self._tidy()

    def unload(self, env_ids: EnvIds) -> None:
        """Leave envs empty."""
        for env_id in env_ids:
            group = self._group[env_id]
            if group is not None:
                group.remove(self.slot[env_id : env_id + 1])
                self._group[env_id] = self._scene[env_id] = None
                self.slot[env_id] = self.group_id[env_id] = -1
        self._moved()

    def step(self, env_ids: EnvIds) -> dict[int, str]:
        """Advance envs; see `World.step`."""
        key = self.layout, env_ids.tobytes()
        if key != self._work_key:  # mostly the same envs step again and again
            self._work_key, self._work, self._work_rows = key, self._work_for(env_ids), as_index(env_ids)
        self.version += 1
        self.times[self._work_rows] += self.step_dt
        results = self.run_batches(
            [(group, functools.partial(group.step, slots, self.engine_steps)) for group, slots in self._work]
        )
        return {env_id: reason for failed in results for env_id, reason in failed.items()}

    def set_self_collisions(self, robot: str, env_ids: EnvIds, enabled: bool) -> None:
        """Let links of a robot collide with each other, or not; the state of these envs stays, to the bit."""
        for env_id in np.asarray(env_ids).tolist():
            self._change_scene(env_id, self._variant(env_id, {robot: enabled}))

    def save(self, env_id: int) -> SavedPhysics:
        """See `World.save`."""
        scene, group = self._scene_of(env_id), self._group_of(env_id)
        arrays = {'time': self.times[[env_id]], **group.save(int(self.slot[env_id]), scene)}
        flags = [_FLAGS.index(robot.self_collisions) for robot in scene.source.robots]
        return SavedPhysics(scene.digest, {**arrays, 'self collisions': np.array(flags, np.int8)})

    def check_compatible(self, env_id: int, saved: SavedPhysics) -> str | None:
        """See `World.check_compatible`."""
        scene, group = self._saved_scene(env_id, saved), self._group_of(env_id)
        if saved.model != scene.digest:
            return 'its models are not those that the state was taken from: an asset file is another one'
        if not group.takes(saved.arrays):
            return f'{self.engine} lays out states in another way than what saved it'
        return None

    def restore(self, env_id: int, saved: SavedPhysics) -> None:
        """See `World.restore`."""
        self._change_scene(env_id, self._saved_scene(env_id, saved))
        group = self._group_of(env_id)
        group.restore(int(self.slot[env_id]), self._scene_of(env_id), saved.arrays)
        self.times[env_id] = saved.arrays['time'][0]
        self.version += 1

    def articulation(self, name: str, env_id: int) -> MujocoArticulationView:
        """View over the robot `name`; KeyError with close matches."""
        robots = self._scene_of(env_id).robots
        if name not in robots:
            raise KeyError(f'env {env_id} has no robot {name!r}; {did_you_mean(name, robots)}')
        layout = robots[name]
        key = ('robot', name, layout.signature)
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = MujocoArticulationView(self, layout)
        return cast(MujocoArticulationView, view)

    def body(self, name: str, env_id: int) -> MujocoBodyView:
        """View over an object or movable scene body; KeyError with close matches."""
        bodies = self._scene_of(env_id).bodies
        if name not in bodies:
            raise KeyError(f'env {env_id} has no movable body {name!r}; {did_you_mean(name, bodies)}')
        view = self._views.get(('body', name))
        if view is None:
            view = self._views[('body', name)] = MujocoBodyView(self, name, lambda scene: scene.bodies.get(name))
        return cast(MujocoBodyView, view)

    def body_names(self, env_id: int) -> tuple[str, ...]:
        """Names of the objects and movable scene bodies of an env."""
        return tuple(self._scene_of(env_id).bodies)

    def camera(self, robot: str | None, path: str, env_id: int) -> MujocoCameraView:
        """View over a camera; ValueError naming the cameras there are."""
        name = self._scene_of(env_id).camera_name(robot, path)
        view = self._views.get(('camera', name))
        if view is None:
            view = self._views[('camera', name)] = self._new_camera(name)
        return cast(MujocoCameraView, view)

    def draw(self, shots: Sequence[RenderRequest], quality: Quality | None = None) -> None:
        """Draw pictures of envs; see `World.draw`."""
        from internutopia.core.render.renderer import Renderer, Scenery

        quality = quality or self.render_quality
        if quality not in self._renderers:
            self._renderers[quality] = Renderer(self.threads, quality)
        by_env: dict[int, list[tuple[CameraPose, Frame]]] = {}
        for shot in shots:
            by_env.setdefault(shot.env_id, []).append((shot.eye, shot.frame))
        sceneries: list[Scenery] = []
        for env_id, views in by_env.items():
            scene, state = self._scene_of(env_id), self._group_of(env_id).full_state(int(self.slot[env_id]))
            sceneries.append(Scenery(scene.model, state, scene.geom_labels, views))
        self._renderers[quality].draw(sceneries)

    def labels(self, env_id: int) -> tuple[str, ...]:
        """What is labelled in an env."""
        return self._scene_of(env_id).labels

    def scene(self, env_id: int) -> CompiledScene:
        """The compiled scene that an env runs; ValueError if it runs none."""
        return self._scene_of(env_id)

    def model(self, env_id: int) -> mujoco.MjModel:
        """A copy of the model that an env runs, with everything that was changed for this env."""
        scene = self._scene_of(env_id)
        return self._group_of(env_id).model(int(self.slot[env_id]), scene)

    def data(self, env_id: int) -> mujoco.MjData:
        """A snapshot of an env's state, with the quantities that follow from it computed."""
        self._scene_of(env_id)
        data = self._group_of(env_id).data(int(self.slot[env_id]))
        mujoco.mj_fwdPosition(self.model(env_id), data)
        return data

    def run_batches(self, calls: Sequence[tuple[BatchArrays, Callable[[], T]]]) -> list[T]:
        """Make calls of groups and return their results, in no particular order."""
        return [call() for _, call in calls]

    def close(self) -> None:
        """Free threads and memory."""
        self.unload(np.arange(self.env_num))
        self.groups.clear()
        self._work.clear()
        self._views.clear()
        for renderer in self._renderers.values():
            renderer.close()

    @property
    def scenes(self) -> Sequence[CompiledScene | None]:
        """The compiled scene that each env runs, None for those that run none."""
        return self._scene

    def _scene_of(self, env_id: int) -> CompiledScene:
        scene = self._scene[env_id]
        if scene is None:
            raise ValueError(f'env {env_id} runs no scene: reset it first')
        return scene

    def _variant(self, env_id: int, self_collisions: Mapping[str, bool | None]) -> CompiledScene:
        """The scene of an env with other self-collisions of its robots."""
        scene = self._scene_of(env_id)
        source = scene.with_self_collisions(self_collisions)
        return scene if source == scene.source else _SCENES.get(source, self.timestep, self._contact)

    def _saved_scene(self, env_id: int, saved: SavedPhysics) -> CompiledScene:
        """The scene of an env, with self-collisions as they were when a state was saved."""
        names, flags = self._scene_of(env_id).robot_names, saved.arrays['self collisions'].tolist()
        return self._variant(env_id, {name: _FLAGS[flag] for name, flag in zip(names, flags, strict=False)})

    def _change_scene(self, env_id: int, scene: CompiledScene) -> None:
        """Let an env go on in a scene of which a state means the same."""
        old, group, slot = self._scene_of(env_id), self._group_of(env_id), int(self.slot[env_id])
        if scene.digest == old.digest:
            return
        saved = group.save(slot, old)
        group.remove(np.array([slot]))
        group = self._group_for(self._structure(scene), scene, 1)
        self._enter(env_id, group, scene, scene.initial_state(scene.source))
        group.restore(int(self.slot[env_id]), scene, saved)
        self._tidy()

    def _enter(
        self, env_id: int, group: EnvBatch, scene: CompiledScene, state: Mapping[str, NDArray[np.float64]]
    ) -> None:
        """Start an env in a group that has room for it."""
        self.slot[env_id] = group.add(env_id, scene, state)
        self._group[env_id] = group
        self.group_id[env_id] = group.id
        self._scene[env_id] = scene

    def _group_of(self, env_id: int) -> EnvBatch:
        """The group of an env that runs a scene."""
        return cast(EnvBatch, self._group[env_id])

    def side(self, group: EnvBatch) -> BatchArrays:
        """What views read and write of a group."""
        return group

    def upload(self, index: Index) -> Index:
        """An index that suits the arrays that views read and write."""
        return index

    def _new_camera(self, name: str) -> MujocoCameraView:
        """A view over the cameras of a name."""
        return MujocoCameraView(self, name)

    @abstractmethod
    def _new_group(self, scene: CompiledScene, capacity: int) -> EnvBatch:
        """A group for envs of the structure of a scene."""

    @abstractmethod
    def _structure(self, scene: CompiledScene) -> bytes:
        """Equal for scenes whose envs can share a group."""

    def _group_for(self, structure: bytes, scene: CompiledScene, count: int) -> EnvBatch:
        """The group of a structure, with room for `count` more envs."""
        for group in self.groups:
            if self._structure(group.scene) == structure:
                group.reserve(count, self.env_num)
                return group
        group = self._new_group(scene, count)
        self.groups.append(group)
        return group

    def _occupied(self) -> list[EnvBatch]:
        return [group for group in self.groups if group.used]

    def _tidy(self) -> None:
        """Drop the oldest empty groups and views of what is gone."""
        occupied = self._occupied()
        empty = [group for group in self.groups if group not in occupied]
        for group in empty[: max(0, len(empty) - _EMPTY_GROUPS_KEPT)]:
            self.groups.remove(group)
        if len(self._views) > _VIEWS_KEPT:
            self._views = {key: view for key, view in self._views.items() if view.segments()}
        self._moved()

    def _moved(self) -> None:
        """Envs came or went. Those that come back to the place they had leave `layout` as it was."""
        self.version += 1
        self.layout = self.slot.tobytes() + self.group_id.tobytes()

    def _work_for(self, env_ids: EnvIds) -> list[tuple[EnvBatch, Slots | None]]:
        """The groups that hold these envs, with their slots; None for all slots."""
        active = np.zeros(self.env_num, bool)
        active[env_ids] = True
        work: list[tuple[EnvBatch, Slots | None]] = []
        for group in self.groups:
            stepped = (group.envs >= 0) & active[group.envs]
            if stepped.all():
                work.append((group, None))
            elif stepped.any():
                work.append((group, np.flatnonzero(stepped).astype(np.int32)))
        return work
