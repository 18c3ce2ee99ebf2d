"""Run of a policy: the loop in which a policy runs all episodes of an Env, of any kind, running anywhere."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from internutopia.core.episodes.queue import EpisodeRecord
from internutopia.core.vec_env import Env
from internutopia.evaluation.policy import Actor, Policy, PolicyError, PolicyGoneError, Request
from internutopia.util import log
from internutopia.util.errors import EnvKeyError, EnvValueError

OnError = Literal['skip', 'fail', 'retry', 'stop']
"""Rules for an episode whose policy fails: no result (a resumed run has it again), a result that says it failed,
another try, or the end of the run."""

POLICY_ERROR = 'policy: '
"""Beginning of the `error` of results of episodes whose policy failed."""


@dataclass
class RunTimes:
    """Time that a run spent, and on what.

    Attributes:
        policy: waiting for answers of the policy, messages included [s].
        env: stepping and resetting envs [s].
        pictures: rendering what is read [s]; None of envs in other processes, whose `env` has it.
        messages: packing and unpacking messages here, not what the policy does of that [s].
        calls: number of calls of the policy.
        requests: number of observations that it was sent.
        steps: number of steps of all envs together.
    """

    policy: float = 0.0
    env: float = 0.0
    pictures: float | None = None
    messages: float = 0.0
    calls: int = 0
    requests: int = 0
    steps: int = 0


class PolicyRun:
    """A policy that runs all episodes of an Env; the config sets where metrics are written.

    An episode whose policy fails (it raises, or gives something that is no action) is dealt with by a rule; the others
    go on. If the policy fails before it ever gave an action, something is wrong with it and not with an episode: then
    the run stops, whatever the rule, unless that is `'skip'`.

    Args:
        env: not reset yet, of tasks whose first robot is the one that the policy moves.
        policy: see `internutopia.evaluation.policy`.
        name: names a task's episode, for messages.
        on_error: the rule.
        retries: number of further tries of an episode with the rule `'retry'`; then it has failed.
        failed: returns the metrics of a task's episode whose policy failed.

    Attributes:
        failures: why episodes were given up, with their names.
        stopped: why the run ended before its last episode; None if it did not.
        times: what the time was spent on.
    """

    def __init__(
        self,
        env: Env,
        policy: Policy,
        name: Callable[[Any], str],
        on_error: OnError = 'skip',
        retries: int = 2,
        failed: Callable[[Any], dict[str, Any]] = lambda task: {},
    ):
        self.failures: list[str] = []
        self.stopped: str | None = None
        self.times = RunTimes()
        self._env, self._policy, self._name = env, policy, name
        self._on_error, self._retries, self._failed = on_error, retries, failed
        self._answered = False  # True once the policy gave an answer that can be made an action of
        self._tries: Counter[int] = Counter()  # of episodes that failed
        self._obs: list[Any] = [None] * env.num_envs
        self._tasks: list[Any] = [None] * env.num_envs
        self._actors: dict[int, Actor] = {}  # of envs that run
        self._steps: Counter[int] = Counter()  # of their episodes
        self._asked: set[int] = set()  # envs whose policy was called in this episode
        self._actions: dict[int, dict[str, Any]] = {}  # of the next step

    def run(self, on_step: Callable[[int], bool] = lambda ended: True) -> None:
        """Run all episodes.

        Args:
            on_step: called after each step with how many episodes have ended with it; False stops.
        """
        try:
            self._start(range(self._env.num_envs))
            while not (self._env.done or self.stopped):
                results = self._step()
                if results is None:
                    continue
                self._obs, terminated, truncated, infos = results
                if not self._env.is_remote:
                    self.times.pictures = self._picture_seconds
                ended = [env_id for env_id in self._actors if terminated[env_id] or truncated[env_id]]
                if not on_step(sum(not (infos[env_id] or {}).get('requeued') for env_id in ended)):
                    break
                self._start(ended)
        except PolicyGoneError as error:
            self.stopped = str(error)
        finally:
            self.times.messages = self._policy.message_seconds

    @property
    def _picture_seconds(self) -> float:
        return 0.0 if self._env.is_remote else self._env.runner.world.picture_seconds

    def _clock(self) -> float:
        """Return a time [s] that stands still while images are rendered."""
        return time.perf_counter() - self._picture_seconds

    def _step(self) -> tuple[list[Any], list[Any], list[Any], list[Any]] | None:
        """Make a step: observations, ends and infos; None if a policy failed: its env has a new episode, none moved."""
        failed = self._find_actions()
        if not failed:
            try:
                actions = [self._actions.get(env_id) for env_id in range(self._env.num_envs)]
                start = self._clock()
                obs, _, terminated, truncated, infos = self._env.step(actions)
                self.times.env += self._clock() - start
                self.times.steps += len(self._actors)
                self._actions.clear()
                self._steps.update(list(self._actors))
                return obs, terminated, truncated, infos
            except (EnvValueError, EnvKeyError) as error:
                if error.env_id not in self._actors:
                    raise
                failed = {error.env_id: error}
                self._answered &= self.times.steps > 0
        self._give_up(failed)
        self._start(failed)
        return None

    def _start(self, env_ids: Iterable[int]) -> None:
        """Start the next episodes in envs, and those after them where a policy fails at once."""
        while (env_ids := sorted(env_ids)) and not self.stopped:
            start = self._clock()
            observations, tasks = self._env.reset(env_ids)
            self.times.env += self._clock() - start
            for env_id, obs, task in zip(env_ids, observations, tasks, strict=True):
                self._obs[env_id], self._tasks[env_id] = obs, task
                self._asked.discard(env_id)
                for known in (self._actors, self._actions, self._steps):
                    known.pop(env_id, None)
            failed: dict[int, Exception] = {}
            for env_id, task in zip(env_ids, tasks, strict=True):
                if task is not None:
                    try:
                        self._actors[env_id] = self._policy.start(task)
                    except Exception as error:
                        failed[env_id] = error
            self._give_up(failed)
            env_ids = failed

    def _find_actions(self) -> dict[int, Exception]:
        """Find the actions of all envs for the next step, asking the policy once; returns errors by env id."""
        failed: dict[int, Exception] = {}
        requests = []
        waiting = [env_id for env_id in self._actors if env_id not in self._actions]
        for env_id in waiting:
            try:
                content = self._actors[env_id].request(self._observation(env_id))
            except Exception as error:
                failed[env_id] = error
                continue
            if content is not None:
                requests.append(Request(env_id, env_id not in self._asked, content))
        for request, answer in zip(requests, self._answers(requests), strict=True):
            self._asked.add(request.env_id)
            try:
                if isinstance(answer, Exception):
                    raise answer
                self._actors[request.env_id].receive(answer)
            except Exception as error:
                failed[request.env_id] = error
        for env_id in waiting:
            if env_id in failed:
                continue
            try:
                action = self._actors[env_id].action(self._observation(env_id))
            except PolicyError as error:  # rows are made actions of when it is their turn
                failed[env_id] = error
            else:
                self._actions[env_id] = {self._tasks[env_id].robots[0].name: action}
                self._answered = True
        return failed

    def _answers(self, requests: list[Request]) -> Iterable[Any]:
        """Query the policy, in one call; an error of the call is every env's."""
        if not requests:
            return []
        start = self._clock()
        try:
            return self._policy.answer(requests)
        except PolicyError as error:
            return [error] * len(requests)
        finally:
            self.times.policy += self._clock() - start
            self.times.calls += 1
            self.times.requests += len(requests)

    def _give_up(self, failed: Mapping[int, Exception]) -> None:
        """End the episodes of envs whose policy failed, by the rule; the first failure is logged in full."""
        again = []
        for env_id, error in failed.items():
            episode = self._env.active_episodes[env_id]
            failure = f'{self._name(self._tasks[env_id])}: {_text(error)}'
            shown = self.failures or self._tries or isinstance(error, PolicyError | EnvValueError | EnvKeyError)
            log.warning('the policy fails in %s', failure, exc_info=None if shown else error)
            if self._on_error == 'stop' or not (self._answered or self._on_error == 'skip'):
                self.failures.append(failure)
                self.stopped = f'the policy fails in {failure}'
                return
            self._tries[episode.id] += 1
            if self._on_error == 'retry' and self._tries[episode.id] <= self._retries:
                again.append(episode)
                continue
            self.failures.append(failure)
            if self._on_error != 'skip':
                task, steps = self._tasks[env_id].type, self._steps[env_id]
                metrics = self._failed(self._tasks[env_id])
                record = EpisodeRecord.of(
                    episode, task, env_id, steps, False, True, metrics, POLICY_ERROR + _text(error)
                )
                self._env.results.write(record)
        if failed:
            self._env.results.flush()
            self._env.task_config_manager.put_back(again)

    def _observation(self, env_id: int) -> Any:
        return self._obs[env_id][self._tasks[env_id].robots[0].name]


def _text(error: Exception) -> str:
    """Format an error, with the line of code that raised it unless it says what is wrong with an answer."""
    if isinstance(error, PolicyError):
        return str(error)
    if isinstance(error, EnvValueError | EnvKeyError):
        return f'{type(error).__name__}: {error}'
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f'{type(error).__name__}: {error} ({place.filename}:{place.lineno})'
