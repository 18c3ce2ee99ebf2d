"""Episode preparer: every fallible part of an episode's start, done before a running env is touched."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from internutopia.config import ObjectCfg, RobotCfg, TaskCfg
from internutopia.core.episodes import Episode
from internutopia.core.robot.env_scene import in_env_frame
from internutopia.core.task.scene_builder import check_sensors, scene_spec
from internutopia.core.task.start_checks import StartChecks
from internutopia.core.task.task import BaseTask, is_reusable
from internutopia.engines.base import SceneHandle, World
from internutopia.model.compiled import CompiledScene
from internutopia.model.spec import JointSpec, SceneSpec
from internutopia.util.conventions import Conventions

T = TypeVar('T', bound=RobotCfg | ObjectCfg)

_SPECS_KEPT = 1024


@dataclass(frozen=True)
class PreparedEpisode:
    """Episode that is ready to start. Classes inside the env see `runtime_config`, users `task_config`.

    `task`: the env's existing task that also runs this episode; None if a new one is needed.
    """

    episode: Episode
    task_config: TaskCfg
    runtime_config: TaskCfg
    model: SceneSpec
    handle: SceneHandle
    task: BaseTask | None = None


class EpisodePreparer:
    """Preparer of the episodes of a run.

    The spec of a task's scene is computed once. Each reset checks the files of each task once.
    """

    def __init__(self, world: World, conventions: Conventions):
        self._world = world
        self._checks = StartChecks(conventions)
        self._conventions = conventions
        self._specs: OrderedDict[tuple[object, ...], SceneSpec] = OrderedDict()  # by task and joints
        self._checked: WeakValueDictionary[tuple[object, ...], SceneHandle] = WeakValueDictionary()  # likewise
        self._reusable: dict[int, bool] = {}  # by task: `is_reusable` says the same of all its objects

    def prepare(
        self,
        episodes: Mapping[int, Episode],
        joints: Mapping[int, Sequence[JointSpec]],
        before: Mapping[int, PreparedEpisode],
        shown: bool,
    ) -> dict[int, PreparedEpisode]:
        """Prepare the episodes that envs shall start in one reset.

        Envs that keep their objects keep their scenes, too, unless all envs are reset: files are not checked.

        Args:
            episodes: the episodes, by env id.
            joints: joints that the scenes of these envs get, with positions on the world in the world frame.
            before: episodes in envs that may keep their objects if their next episode is of the same task.
            shown: True if their configs are returned to a user, who may change them.

        Errors of scenes and sensors name episode, task and env.
        """
        handles: dict[tuple[object, ...], SceneHandle] = {}
        prepared: dict[int, PreparedEpisode] = {}
        all_envs = len(episodes) == self._world.env_num
        for env_id, episode in episodes.items():
            try:
                origin = self._world.env_origins[env_id]
                key = episode.task_index, *map(in_env_frame, joints[env_id], repeat(origin))
                model = self._spec(key, episode)
                last = before.get(env_id)
                if last and not (last.model is model and last.task and self._is_reusable(episode, last.task)):
                    last = None
                if last is None or all_envs:
                    if key not in handles:
                        handles[key] = self._handle(key, episode, model)
                    if last is None or last.handle is not handles[key]:
                        last = self._fresh(env_id, episode, shown, model, handles[key])
                prepared[env_id] = replace(last, episode=episode)
            except Exception as error:
                where = f'episode {episode.id} (task_configs[{episode.task_index}]) into env {env_id}'
                error.add_note(f'while loading {where}')
                raise
        return prepared

    def _is_reusable(self, episode: Episode, task: BaseTask) -> bool:
        if episode.task_index not in self._reusable:
            self._reusable[episode.task_index] = is_reusable(task)
        return self._reusable[episode.task_index]

    def _handle(self, key: tuple[Any, ...], episode: Episode, model: SceneSpec) -> SceneHandle:
        """Return the scene of an episode, compiled and checked."""
        handle = self._world.prepare(model)
        if self._checked.get(key) is not handle:
            check_sensors(episode.snapshot(), handle)
            if isinstance(handle, CompiledScene):
                self._checks.check(episode.task_index, model, handle)
            self._checked[key] = handle
        return handle

    def _fresh(
        self, env_id: int, episode: Episode, shown: bool, model: SceneSpec, handle: SceneHandle
    ) -> PreparedEpisode:
        """Prepare an episode with new objects."""
        task_config = episode.snapshot()
        # shares nothing with what a user gets
        config = self._conventions.runtime_config(episode.snapshot() if shown else task_config)
        robots = map(localize, config.robots, repeat(config.robots_root_path), repeat(env_id))
        objects = map(localize, config.objects, repeat(config.objects_root_path), repeat(env_id))
        config = config.model_copy(update={'robots': list(robots), 'objects': list(objects)})
        return PreparedEpisode(episode, task_config, config, model, handle)

    def _spec(self, key: tuple[Any, ...], episode: Episode) -> SceneSpec:
        """Return the spec of an episode's scene: the same object for all equal ones."""
        spec = self._specs.get(key)
        if spec is None:
            spec = self._conventions.scene(replace(scene_spec(episode.snapshot()), joints=key[1:]))
            self._specs[key] = spec
            if len(self._specs) > _SPECS_KEPT:
                self._specs.popitem(last=False)
        return spec


def localize(member: T, root_path: str, env_id: int) -> T:
    """Return the config of a robot or object for classes inside the env: name with the env id, absolute prim path."""
    path = f'/World/env_{env_id}{root_path}/{member.prim_path.lstrip("/")}'
    return member.model_copy(update={'name': f'{member.name}_{env_id}', 'prim_path': path})
