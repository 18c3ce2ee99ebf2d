"""Simulator runner: the physics world of one process, the episode in each env, and the parts of a step and a reset.

The list API (`LocalRunner`) and the array API (`ArrayRunner`) write their step out, around `stepping` and `advance`:
validate, apply, physics (each as often as actions are repeated), observe, evaluate, record. The runner trusts its
arguments: APIs check them. A reset: take episodes, prepare them, clean up, load, set up tasks, begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.config import Config, ObjectCfg
from internutopia.core.episodes import Episode, EpisodeQueue
from internutopia.core.episodes.queue import EpisodeRecord
from internutopia.core.episodes.results import Results, ResultsWriter
from internutopia.core.object import init_object
from internutopia.core.observations import EMPTY_RESULT, columns_of_results
from internutopia.core.robot.batched import BatchedRobots
from internutopia.core.robot.env_scene import EnvJoints, EnvScene
from internutopia.core.robot.rigid_body import IRigidBody
from internutopia.core.runner.env_group import EnvSlot
from internutopia.core.runner.framing import Box, Camera, Framing, camera_pose
from internutopia.core.runner.grid import GridTile, SceneReach, env_origins, render_tile
from internutopia.core.runner.interfaces import Failures, Image, StepWatcher
from internutopia.core.runner.memory import check_memory
from internutopia.core.scene.scene import EnvScenes, IScene, LabelledObject, labelled_objects
from internutopia.core.sensor.sensor import noise_key
from internutopia.core.task.preparer import EpisodePreparer, PreparedEpisode, localize
from internutopia.core.task.scene_builder import check_implemented, object_spec
from internutopia.core.task.task import BaseTask, create_task
from internutopia.engines.base import DeviceWorld
from internutopia.engines.env_selection import EnvSelection, select_envs
from internutopia.engines.factory import create_world
from internutopia.model.spec import JointSpec
from internutopia.rendering.camera import CameraPose
from internutopia.util.arrays import to_host
from internutopia.util.conventions import StepColumns, conventions_of, set_up_process
from internutopia.util.errors import EnvKeyError
from internutopia.util.memory import collections_put_off

_DEFAULT_RENDERING_INTERVAL = 5


class SimulatorRunner:
    """Steps and resets `config.env_num` envs.

    Args:
        config: what to run.
        queue: which episode runs next.
        results: gets the result of every ended episode; None: the results file of the config.
        device_arrays: whether batched arrays are tensors on the device of the engine, if it has one.
        origins: where the envs stand `(env_num, 3)` [m]; None means on a grid of their own.

    Attributes:
        world: the physics world.
        spacing: distance between neighbouring envs on the grid [m].
        framing: boxes around the episodes, which default cameras show.
        envs: what each env holds.
        running: which envs run an episode, bool `(n,)`, an array of the world's kind.
        steps: number of steps of the episode in each env, int `(n,)`.
        scenes: the scenes of the envs.
        batches: the batched robots.
        watchers: step watchers, called in each step.
        last: results of the last step of each env, in the list API.
        overrides: actions of robots, by env id and name, that the list API takes instead of those that it is given.
        actions: actions of the step in the list API, with the overrides, by env id.
    """

    def __init__(
        self,
        config: Config,
        queue: EpisodeQueue,
        results: Results | None = None,
        device_arrays: bool = False,
        origins: NDArray[np.float64] | None = None,
    ):
        set_up_process(config)
        check_implemented(config)
        check_memory(config)
        self.config = config
        self.env_num = config.env_num
        self.dt = float(config.simulator.physics_dt)
        self.queue = queue
        assert config.env_offset_size != 'auto'  # `with_spacing`, before there are processes
        self.spacing = config.env_offset_size
        self._reach = SceneReach()
        if origins is None:
            origins = env_origins(config.env_num, self.spacing)
        self.world = create_world(config.simulator, config.env_num, origins, device_arrays)
        self.framing = Framing(self.world, self.spacing)
        if results is None:
            results = ResultsWriter(config)
            queue.skip(results.done)
        self.results: Results = results
        interval = config.simulator.rendering_interval
        self.render_interval = _DEFAULT_RENDERING_INTERVAL if interval is None else interval
        self.envs: list[EnvSlot | None] = [None] * config.env_num
        self.running: NDArray[np.bool_] = self.world.arrays.zeros(config.env_num, 'bool')
        self.steps: NDArray[np.int64] = self.world.arrays.zeros(config.env_num, 'int64')
        self.last: StepColumns = columns_of_results([EMPTY_RESULT] * config.env_num)
        self.scenes = EnvScenes()
        self.batches = BatchedRobots(self.world)
        self.watchers: list[StepWatcher] = []
        self.overrides: dict[int, dict[str, Any]] = {}
        self.actions: Sequence[Any] | Mapping[int, Any] = ()
        self._joints = EnvJoints(self.envs, self.scenes.loaded)
        self._step_count = 0
        conventions = conventions_of(config.compat)(config)
        self._conventions = conventions
        self.world.keeps_frames = conventions.keeps_frames
        self._preparer = EpisodePreparer(self.world, conventions)

    @contextmanager
    def stepping(self) -> Iterator[EnvSelection]:
        """Context of one step; gives the envs that run. Watchers are called before it and at its end."""
        for watcher in self.watchers:
            watcher.on_step_start()
        with self.scenes.entered():
            yield select_envs(self.world, self.world.arrays.xp.asarray(self.running, copy=True))
        for watcher in self.watchers:
            watcher.on_change()

    def advance(self, envs: EnvSelection, failures: Failures, commanded: bool = True) -> EnvSelection:
        """Step physics in these envs; returns those that are healthy.

        Args:
            envs: the envs.
            failures: gets the envs that fail.
            commanded: whether the robots were commanded for it, which watchers are called for.
        """
        if commanded:
            for watcher in self.watchers:
                watcher.on_commanded()
        before = self.world.version
        if isinstance(self.world, DeviceWorld):
            failed = self.world.advance(envs.index)
            failures.mask = failed if failures.mask is None else failures.mask | failed
        elif envs.any and (errors := self.world.step(envs.host_ids)):
            failures.errors |= errors
            failures.mask = np.isin(np.arange(self.env_num), list(failures.errors))
        self.world.stepped += self.world.version - before
        for update in self.scenes.after_physics:
            update()
        return envs if failures.mask is None else envs.without(failures.mask)

    def count_step(self) -> None:
        """Count a step of the episodes that run, and of the run: `world.frame_due` follows."""
        self.steps += self.running
        self._step_count += 1
        self.world.frame_due = self._step_count % (self.render_interval + 1) == 0

    def reset(
        self, env_ids: Sequence[int], begin: Callable[[Sequence[int]], None], shown: bool = True
    ) -> dict[int, PreparedEpisode]:
        """Start the next episodes in these envs, in this order; returns those that got one, by env id.

        Whatever goes wrong puts the episodes back to the head of the queue.

        Args:
            env_ids: the envs.
            begin: called with the envs whose episodes begin, when everything is in place there.
            shown: whether a user gets the task configs, and may change them.
        """
        taken: dict[int, Episode] = {}
        joints: dict[int, Sequence[JointSpec]] = {}
        for env_id in env_ids:
            if (episode := self.queue.take()) is not None:
                taken[env_id], joints[env_id] = episode, self._joints.of(env_id)
        try:
            self._joints.use()
            prepared = self.prepare(taken, joints, shown)
            self.start(env_ids, prepared, begin)
        except BaseException:
            self.queue.put_back(list(taken.values()))
            raise
        for watcher in self.watchers:
            watcher.on_change()
        return prepared

    def prepare(
        self, episodes: Mapping[int, Episode], joints: Mapping[int, Sequence[JointSpec]], shown: bool = True
    ) -> dict[int, PreparedEpisode]:
        """Prepare the episodes that envs shall start, with what joints, by env id.

        Whatever is wrong with them is found here, before anything has changed.
        """
        before: dict[int, PreparedEpisode] = {}
        for env_id in () if shown else episodes:  # configs that a user was given are not run again
            slot = self.envs[env_id]
            if slot is not None and self.scenes.loaded[env_id].model is slot.prepared.model:  # nor are changed scenes
                before[env_id] = slot.prepared
        return self._preparer.prepare(episodes, joints, before, shown)

    def start(
        self,
        env_ids: Sequence[int],
        prepared: Mapping[int, PreparedEpisode],
        begin: Callable[[Sequence[int]], None],
    ) -> None:
        """Start prepared episodes; envs without one are left without an episode.

        If a class of an extension fails, all of these envs are without an episode.
        """
        with self.scenes.entered(), collections_put_off():
            self.world.frame_due = False
            if new := [i for i in env_ids if i not in prepared or prepared[i].task is None]:
                self._clean_up(new)
            if left := set(env_ids) - prepared.keys():  # the others are unloaded when they are loaded
                self.world.unload(np.array(sorted(left), np.intp))
            try:
                self._load(prepared)
                for update in self.scenes.after_physics:
                    update()
                begin(list(prepared))
            except BaseException:
                self.clear(list(prepared))
                raise

    def record(
        self,
        env_id: int,
        episode: Episode,
        steps: int,
        terminated: bool,
        truncated: bool,
        metrics: dict[str, Any],
        error: str | None,
    ) -> None:
        """Write the result of an episode that ended in an env; it lasts from the next `results.flush()`."""
        task = self.slot(env_id).task.config.type
        self.results.write(EpisodeRecord.of(episode, task, env_id, steps, terminated, truncated, metrics, error))

    def slot(self, env_id: int) -> EnvSlot:
        """Return the slot of an env that has an episode."""
        slot = self.envs[env_id]
        assert slot is not None
        return slot

    def slots(self, env_ids: Iterable[int]) -> list[EnvSlot]:
        """Return the slots of the envs that have episodes; those without are left out."""
        return list(filter(None, map(self.envs.__getitem__, env_ids)))

    def active(self) -> list[int]:
        """Return the ids of the envs whose episode goes on."""
        return np.flatnonzero(to_host(self.running)).tolist()

    def clear(self, env_ids: Sequence[int]) -> None:
        """Remove what runs in these envs; `scenes` must be entered."""
        self._clean_up(env_ids)
        self.world.unload(np.array(sorted(env_ids), np.intp))

    def _clean_up(self, env_ids: Sequence[int]) -> None:
        """Remove the tasks and robots of these envs."""
        self.running[self.world.arrays.asarray(env_ids, 'int64')] = False
        for env_id in env_ids:
            slot, self.envs[env_id] = self.envs[env_id], None
            if slot is not None:
                slot.last = EMPTY_RESULT
                slot.task.cleanup()
            self.batches.leave(env_id)
            self.scenes.loaded.pop(env_id, None)

    def close(self) -> None:
        """Free everything."""
        self._joints.close()
        with self.scenes.entered():
            self.clear([i for i, slot in enumerate(self.envs) if slot is not None])
        self.world.close()
        self.results.close()

    @property
    def current_tasks(self) -> dict[str, BaseTask]:
        """The tasks that are loaded, by task name."""
        return {slot.episode.task_name: slot.task for slot in self.envs if slot is not None}

    @property
    def env_id_to_task_name_map(self) -> dict[int, str]:
        """Task name by env id."""
        return {env_id: slot.episode.task_name for env_id, slot in enumerate(self.envs) if slot is not None}

    @property
    def task_name_to_env_id_map(self) -> dict[str, int]:
        """Env id by task name."""
        return {name: env_id for env_id, name in self.env_id_to_task_name_map.items()}

    @property
    def finished_tasks(self) -> set[str]:
        """Names of the loaded tasks whose episode has ended."""
        return {slot.episode.task_name for slot in self.envs if slot is not None and slot.ended}

    def get_current_time_step_index(self) -> int:
        """Return the number of steps so far."""
        return self._step_count

    def set_current_time_step_index(self, index: int) -> None:
        """Go on counting steps from here."""
        self._step_count = index

    def get_obj(self, name: str, env_id: int = 0) -> IRigidBody:
        """Return the object or movable scene body of that name. KeyError with close matches."""
        return self._scene(env_id).get(name)

    def objects(self, env_id: int = 0, category: str | None = None) -> list[LabelledObject]:
        """Return the labelled objects of an env, or those of a category, with pose and size.

        ValueError with close matches if there is none of the category, KeyError if the env runs no episode.
        """
        self._scene(env_id)
        return labelled_objects(self.world, env_id, category)

    def add_object(self, config: ObjectCfg, env_id: int = 0) -> IRigidBody:
        """Add an object to an env that runs an episode, until that ends; returns its body.

        Everything else in the env keeps its state, to the bit. The scene is compiled with the object, in the time that
        a first reset takes (seconds for meshes that are new).

        Args:
            config: the object, as in a `TaskCfg`; its pose is in the frame of the env.
            env_id: the env.

        Raises:
            KeyError: the env runs no episode.
            ValueError: it has an object of that name or prim path, or the type or asset cannot be used.
            NotImplementedError: the engine cannot, all but `mujoco`.
        """
        scene = self._scene(env_id)
        task = self.slot(env_id).task
        with self.scenes.entered():
            spec = object_spec(config, task.config.objects_root_path)
            if spec is not None:
                scene.add_object(spec)
            own = localize(config, task.config.objects_root_path, env_id)
            task.objects[config.name] = init_object(own, scene)
        return self.get_obj(config.name, env_id)

    def remove_object(self, name: str, env_id: int = 0) -> None:
        """Remove an object from an env that runs an episode, with the joints that hold it, until that ends.

        KeyError with close matches if it has no such object, NotImplementedError as of `add_object`.
        """
        with self.scenes.entered():
            self._scene(env_id).remove_object(name)
        self.slot(env_id).task.objects.pop(name, None)

    def render(self, camera: Camera, size: tuple[int, int]) -> Image:
        """Render all envs that hold an episode; see `vec_env.Env.render`."""
        return self.render_tile(self.camera_pose(camera, size), size, sorted(self.scenes.loaded)).picture

    def camera_pose(self, camera: Camera, size: tuple[int, int], box: Box | None = None) -> CameraPose:
        """Return the camera, world frame, for an argument of `render`; `box` is around what it shows, None: `box()`."""
        with self.scenes.entered():
            return camera_pose(camera, self.world, size, box or self.box())

    def box(self) -> Box | None:
        """Return the box around all episodes here, see `Framing.box_around`."""
        return self.framing.box_around({i: slot for i, slot in enumerate(self.envs) if slot is not None})

    def render_tile(self, pose: CameraPose, size: tuple[int, int], shown: Sequence[int]) -> GridTile:
        """Render the envs here; `shown` are all envs in the picture that this becomes a part of."""
        if len(shown) > 1:
            self.warn_of_overlap()
        return render_tile(self.world, sorted(self.scenes.loaded), shown, pose, size, self.spacing)

    def warn_of_overlap(self) -> None:
        """Warn once if envs are too near to each other to be seen in one picture."""
        for slot in self.slots(range(self.env_num)):
            self._reach.add(slot.prepared.handle)
        self._reach.warn_of_overlap(self.spacing)

    def _scene(self, env_id: int) -> IScene:
        """Return the scene of an env that runs an episode. KeyError for another one."""
        if env_id not in self.scenes.loaded:
            raise EnvKeyError(env_id, f'env {env_id} runs no episode: reset it first')
        return self.scenes.loaded[env_id]

    def _load(self, prepared: Mapping[int, PreparedEpisode]) -> None:
        self.world.load({env_id: (each.handle, each.model) for env_id, each in prepared.items()})
        where = self.world.arrays.asarray(list(prepared), 'int64')
        self.steps[where], self.running[where] = 0, True
        created: list[BaseTask] = []
        kept: list[int] = []
        for env_id, each in prepared.items():
            self.world.noise_keys[env_id] = noise_key(self.queue.seed, each.episode.id)
            if (task := each.task) is None:
                task = self._create_task(env_id, each)
                created.append(task)
            else:
                task.name = each.episode.task_name
                kept.append(env_id)
            self.envs[env_id] = EnvSlot(env_id, each, task, self.steps, self.running, self.last)
        if kept:
            self.batches.restart(kept)
        for task in created:
            task.post_reset()
            if task.reward is not None:
                task.reward.reset()

    def _create_task(self, env_id: int, prepared: PreparedEpisode) -> BaseTask:
        """Create the task of an episode, with its robots and objects, in an env whose scene is loaded."""
        scene = EnvScene(
            self.world,
            env_id,
            self.batches,
            convention=self._conventions.scene,
            native=self._conventions.native_scene,
            handles_in_world=self._conventions.handles_in_world,
        )
        scene.model = prepared.model
        local, own = prepared.runtime_config, prepared.task_config
        for robot, named in zip(local.robots, own.robots, strict=True):
            scene.robot_paths[robot.prim_path] = named.name
        for obj, named in zip(local.objects, own.objects, strict=True):
            scene.object_paths[obj.prim_path] = named.name
        self.scenes.loaded[env_id] = scene
        task = create_task(local, scene)
        task.set_up_runtime(prepared.episode.task_name, env_id, self.world.env_origins[env_id].tolist())
        task.set_up_scene(scene)
        task.load()
        return task
