"""Asynchronous stepper: actions are sent to groups of envs, and results fetched once they are ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from internutopia.core.observations import StepResult
from internutopia.core.runner.interfaces import Action, EnvRunner
from internutopia.util.errors import EnvRuntimeError, EnvValueError


class AsyncStepper:
    """Stepper with actions that wait for the rest of their group, and groups that are at work.

    A group begins its step as soon as each of its running envs has an action, and at once if none of them runs.

    Attributes:
        used: True if actions were sent; otherwise every env is idle and has no action waiting.
    """

    def __init__(self, runner: EnvRunner):
        self._runner = runner
        self._group_of = {env_id: index for index, group in enumerate(runner.groups) for env_id in group}
        self._waiting: dict[int, dict[int, Action]] = {}  # by group, actions by env id
        self._at_work: set[int] = set()
        self._done: set[int] = set()  # at work, and its results can be collected
        self.used = False

    def send(self, actions: Mapping[int, Action]) -> None:
        """Send envs their next actions.

        ValueError if an env has its action already; ValueError or KeyError for a bad action of a group that could
        begin: that group has not moved and forgets what it was sent with this call. Others are not affected.
        """
        self.used = True
        for env_id in actions:
            group = self._group_of[env_id]
            if group in self._at_work or env_id in self._waiting.get(group, ()):
                raise EnvValueError(env_id, f'send: env {env_id} already has an action; call recv first')
        for group in sorted({self._group_of[env_id] for env_id in actions}):
            earlier = self._waiting.get(group, {})
            gathered = {**earlier, **{i: a for i, a in actions.items() if self._group_of[i] == group}}
            self._waiting[group] = gathered
            if self._complete(group):
                self._waiting[group] = earlier  # should the runner refuse them
                self._runner.step_async(group, gathered)
                del self._waiting[group]
                self._at_work.add(group)

    def recv(self, min_envs: int) -> dict[int, StepResult]:
        """Wait until that many envs have made their step; returns the results of all that have, by env id.

        ValueError if fewer are at work.
        """
        at_work = sum(len(self._runner.groups[group]) for group in self._at_work)
        if not 1 <= min_envs <= at_work:
            raise ValueError(
                f'recv: min_envs={min_envs}, but {at_work} envs are stepping; a group of envs begins its step when '
                'each of those that run has an action'
            )
        while sum(len(self._runner.groups[group]) for group in self._done) < min_envs:
            self._done.update(self._runner.poll())
        results: dict[int, StepResult] = {}
        for group in sorted(self._done):
            self._done.discard(group)
            self._at_work.discard(group)  # also if the step failed
            results.update(zip(self._runner.groups[group], self._runner.step_wait(group), strict=True))
        return results

    def check_idle(self, call: str, env_ids: Sequence[int] | None = None) -> None:
        """Raise a RuntimeError if one of these envs (None: any) is at work."""
        for group in sorted(self._at_work):
            busy = [i for i in self._runner.groups[group] if env_ids is None or i in env_ids]
            if busy:
                raise EnvRuntimeError(busy[0], f'{call}: env {busy[0]} is stepping; call recv first')

    def forget(self, env_ids: Sequence[int]) -> None:
        """Drop actions that were sent to envs and whose steps have not begun."""
        for env_id in env_ids if self._waiting else ():
            self._waiting.get(self._group_of[env_id], {}).pop(env_id, None)

    def _complete(self, group: int) -> bool:
        envs = self._runner.envs
        running = [i for i in self._runner.groups[group] if (env := envs[i]) is not None and not env.ended]
        return all(env_id in self._waiting[group] for env_id in running)
