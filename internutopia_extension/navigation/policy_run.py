"""Run of a policy: the loop of a navigation policy over all episodes of an Env."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from internutopia.core.vec_env import Env
from internutopia.util import log
from internutopia.util.errors import EnvKeyError, EnvValueError
from internutopia_extension.configs.tasks import NavigationTaskCfg
from internutopia_extension.navigation.policies import Policy


class PolicyRun:
    """A policy that runs all episodes of an Env; the config sets where metrics are written.

    An episode whose policy fails (it raises, or gives something that is no action) is abandoned without a result, the
    others go on: resumed, the run has it again.

    Args:
        env: not reset yet, of tasks as `navigation_tasks` makes them, whose robot has one controller for discrete
            actions.
        policy: see `internutopia_extension.navigation.policies`.

    Attributes:
        failures: why episodes were abandoned, with their names.
    """

    def __init__(self, env: Env, policy: Policy):
        self.failures: list[str] = []
        self._env, self._policy = env, policy
        self._obs: list[Any] = [None] * env.num_envs
        self._acts: dict[int, Callable[[Mapping[str, Any]], Any]] = {}  # of envs that run
        self._under_way: dict[int, Any] = {}  # what their policies gave last, speeds apart
        self._actions: dict[int, dict[str, Any]] = {}  # of the next step

    def run(self, on_step: Callable[[int], bool] = lambda ended: True) -> None:
        """Run all episodes.

        Args:
            on_step: called after each step with how many episodes have ended with it; False stops.
        """
        self._start(range(self._env.num_envs))
        while not self._env.done:
            results = self._step()
            if results is None:
                continue
            self._obs, terminated, truncated, infos = results
            ended = [env_id for env_id in self._acts if terminated[env_id] or truncated[env_id]]
            if not on_step(sum(not (infos[env_id] or {}).get('requeued') for env_id in ended)):
                break
            self._start(ended)

    def _step(self) -> tuple[list[Any], list[Any], list[Any], list[Any]] | None:
        """Make a step: observations, ends and infos; None if a policy failed: its env has a new episode, none moved."""
        abandoned = [env_id for env_id in list(self._acts) if not self._find_action(env_id)]
        if not abandoned:
            try:
                actions = [self._actions.get(env_id) for env_id in range(self._env.num_envs)]
                obs, _, terminated, truncated, infos = self._env.step(actions)
                self._actions.clear()
                return obs, terminated, truncated, infos
            except (EnvValueError, EnvKeyError) as error:
                if error.env_id not in self._acts:
                    raise
                self._abandon(error.env_id, error)
                abandoned = [error.env_id]
        self._start(abandoned)
        return None

    def _start(self, env_ids: Iterable[int]) -> None:
        """Start the next episodes in envs, and those after them where a policy fails at once."""
        while env_ids := sorted(env_ids):
            observations, tasks = self._env.reset(env_ids)
            for env_id, obs in zip(env_ids, observations, strict=True):
                self._obs[env_id] = obs
                for known in (self._acts, self._under_way, self._actions):
                    known.pop(env_id, None)
            started = {env_id: task for env_id, task in zip(env_ids, tasks, strict=True) if task is not None}
            for env_id, task in started.items():
                try:
                    act = self._policy(task)
                    if not callable(act):
                        raise TypeError(f'policy(task): expected a function of an observation, got {act!r}')
                    self._acts[env_id] = act
                except Exception as error:
                    self._abandon(env_id, error)
            env_ids = started.keys() - self._acts.keys()

    def _find_action(self, env_id: int) -> bool:
        """Find the action of an env for the next step; returns whether its policy had one."""
        if env_id in self._actions:
            return True
        task = self._task(env_id)
        robot = task.robots[0].name
        obs = self._obs[env_id][robot]
        controllers = obs['controllers']
        if env_id not in self._under_way or all(each['finished'] for each in controllers.values()):
            try:
                given = self._acts[env_id](obs)
            except Exception as error:
                self._abandon(env_id, error)
                return False
            if isinstance(given, Mapping):
                self._under_way.pop(env_id, None)
                self._actions[env_id] = {robot: dict(given)}
                return True
            self._under_way[env_id] = given
        self._actions[env_id] = {robot: {next(iter(controllers)): [self._under_way[env_id]]}}
        return True

    def _abandon(self, env_id: int, error: Exception) -> None:
        """Note that the policy has failed in an env; the first time in full."""
        episode = self._task(env_id).episode
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = '' if isinstance(error, EnvValueError | EnvKeyError) else f' ({place.filename}:{place.lineno})'
        failure = f'episode {episode.episode_id!r} of {episode.scene}: {type(error).__name__}: {error}{where}'
        log.warning('the policy fails in %s', failure, exc_info=None if self.failures else error)
        self.failures.append(failure)

    def _task(self, env_id: int) -> NavigationTaskCfg:
        return cast('NavigationTaskCfg', self._env.active_task_configs[env_id])
