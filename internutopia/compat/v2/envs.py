"""2.x behaviour of the list API and its single-env form: results, bad env ids, what a distributed run has not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from internutopia.compat.v2.warner import Warner
from internutopia.config import Config
from internutopia.core.runner.base import EnvRunner, EpisodeView
from internutopia.core.runner.step_result import StepResult

GYM_BEFORE_RESET = StepResult({}, 0.0, False, False, None)
"""Result of a step of `gym_env.Env` before the first reset."""
_FINISHED = StepResult(None, -1.0, True, False, None)


class ListApi2x:
    """Behaviour of the list API of one run that differs from that without the switch.

    Attributes:
        unrewarded: what a task without a reward is worth at each step.
    """

    def __init__(self, config: Config):
        self.unrewarded = -1.0
        self._rewarded = [task.reward is not None for task in config.task_configs]
        self._resume = config.resume
        self._distributed = getattr(config, 'distribution_config', None) is not None
        self._warner = Warner()

    @classmethod
    def of(cls, config: Config) -> ListApi2x | None:
        """Return the behaviour of 2.x if a config requests it."""
        return cls(config) if config.compat == '2.x' else None

    def start_results(self, runner: EnvRunner) -> None:
        """Write results as in 2.x, to a file that is empty at the start; a run to be resumed keeps the current form.

        OSError if another run writes to the file; the runner is closed then.
        """
        if self._resume:
            return
        try:
            runner.results.start_over(metrics_only=True)
        except BaseException:
            runner.close()
            raise

    def results(self, results: Iterable[StepResult], envs: Iterable[EpisodeView | None]) -> list[StepResult]:
        """Return the results of a step as a script of 2.x gets them, each with what its env holds."""
        return [self._result(result, env) for result, env in zip(results, envs, strict=True)]

    def reset(
        self,
        given: Sequence[Any],
        check: Callable[[Sequence[Any]], list[int]],
        reset: Callable[[Sequence[int]], tuple[list[Any], list[Any]]],
    ) -> tuple[list[Any], list[Any]]:
        """Reset the envs of a list that may hold bad ids; returns the result of `reset`.

        Args:
            given: the list.
            check: makes env ids of a list, ValueError if one of them is bad.
            reset: resets envs.
        """
        ids, places = self._good_ids(given, check)
        obs, infos = reset(ids)
        return [None if k is None else obs[k] for k in places], [None if k is None else infos[k] for k in places]

    def check_local(self, call: str) -> None:
        """Raise NotImplementedError in a distributed run."""
        if self._distributed:
            raise NotImplementedError(f"{call}: not in a distributed run with compat='2.x', as in 2.x")

    def _good_ids(
        self, given: Sequence[Any], check: Callable[[Sequence[Any]], list[int]]
    ) -> tuple[list[int], Sequence[int | None]]:
        """Return the good ids of a list, and for each of its entries which of them it is, None for a bad one."""
        try:
            ids = check(given)
            return ids, range(len(ids))
        except ValueError:
            if not isinstance(given, Iterable):
                raise
        ids, places = [], []
        for value in given:
            try:
                ids = check([*ids, value])
                places.append(len(ids) - 1)
            except ValueError as error:
                self._warner.warn(f'{error}; it gets None')
                places.append(None)
        return ids, places

    def _result(self, result: StepResult, env: EpisodeView | None) -> StepResult:
        if env is None:
            return _FINISHED
        return result if self._rewarded[env.episode.task_index] else result._replace(reward=self.unrewarded)
