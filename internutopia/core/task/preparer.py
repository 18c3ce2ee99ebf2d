"""Episode preparer: everything about an episode that can go wrong, done before a running env is touched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from internutopia.compat.v2.joints import in_env_frame
from internutopia.compat.v2.specs import as_in_2x
from internutopia.core.config import TaskCfg
from internutopia.core.config.compat import Compat
from internutopia.core.episodes import Episode
from internutopia.core.model.compiled import CompiledScene
from internutopia.core.model.spec import JointSpec, SceneSpec
from internutopia.core.task.scene_builder import check_sensors, scene_spec
from internutopia.core.task.start_checks import StartChecks
from internutopia.core.world.base import SceneHandle, World


@dataclass(frozen=True)
class PreparedEpisode:
    """An episode that is ready to start. Classes inside the env see `runtime_config`, users `task_config`."""

    episode: Episode
    task_config: TaskCfg
    runtime_config: TaskCfg
    model: SceneSpec
    handle: SceneHandle


class EpisodePreparer:
    """Prepares the episodes of one reset: envs that start the same task share what is prepared for it."""

    def __init__(self, world: World, checks: StartChecks, compat: Compat):
        self._world = world
        self._checks = checks
        self._compat = compat
        self._scenes: dict[tuple[object, ...], tuple[SceneSpec, SceneHandle]] = {}  # by task and joints

    def prepare(
        self, env_id: int, episode: Episode, shown: bool, world_joints: Sequence[JointSpec] = ()
    ) -> PreparedEpisode:
        """Prepare an episode for an env.

        Args:
            env_id: the env.
            episode: the episode.
            shown: whether its config is handed to a user, who may change it.
            world_joints: joints that its scene gets, with positions on the world in the world frame.

        Whatever the scene or a sensor raises names episode, task and env.
        """
        try:
            task_config = episode.snapshot()
            # shares nothing with what a user gets
            runtime_config = _localize(episode.snapshot() if shown else task_config, env_id)
            joints = tuple(in_env_frame(joint, self._world.env_origins[env_id]) for joint in world_joints)
            key = episode.task_index, *joints
            if key not in self._scenes:
                model = replace(scene_spec(task_config), joints=joints)
                if self._compat == '2.x':
                    model = as_in_2x(model)
                handle = self._world.prepare(model)
                check_sensors(task_config, handle)
                if isinstance(handle, CompiledScene):
                    self._checks.check(episode.task_index, model, handle)
                self._scenes[key] = model, handle
            return PreparedEpisode(episode, task_config, runtime_config, *self._scenes[key])
        except Exception as error:
            error.add_note(f'while loading episode {episode.id} (task_configs[{episode.task_index}]) into env {env_id}')
            raise


def _localize(config: TaskCfg, env_id: int) -> TaskCfg:
    """The config that classes inside the env see: names with the env id, absolute prim paths."""
    root = f'/World/env_{env_id}'

    def local(member: Any, parent: str) -> Any:
        path = '/' + member.prim_path.lstrip('/')
        return member.model_copy(update={'name': f'{member.name}_{env_id}', 'prim_path': root + parent + path})

    return config.model_copy(
        update={
            'robots': [local(robot, config.robots_root_path) for robot in config.robots],
            'objects': [local(obj, config.objects_root_path) for obj in config.objects],
        }
    )
