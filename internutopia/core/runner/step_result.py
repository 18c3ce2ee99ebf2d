"""Step result: results of a step for the list API, env by env."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from internutopia.core.observations import Observation

_IMMUTABLE = (bool, int, float, str, type(None))


class StepResult(NamedTuple):
    """Result of a step in one env, all None for an env without an episode."""

    observation: dict[str, Any] | None
    reward: float | None
    terminated: bool | None
    truncated: bool | None
    info: dict[str, Any] | None

    def __deepcopy__(self, memo: dict[int, Any]) -> StepResult:
        return StepResult(*map(_copied, self))


EMPTY_RESULT = StepResult(None, None, None, None, None)


def repeat_result(result: StepResult) -> StepResult:
    """Return a copy of the last result of an env that has ended; shares nothing with it."""
    return copy.deepcopy(result)._replace(reward=0.0)


def _copied(value: Any) -> Any:
    """Return a deep copy, in a quarter of the time for common types; near the end of a run most envs have ended."""
    kind = type(value)
    if kind is dict or isinstance(value, Observation):
        return {key: _copied(item) for key, item in value.items()}
    if kind is np.ndarray and not value.dtype.hasobject:
        return value.copy()
    return value if kind in _IMMUTABLE else copy.deepcopy(value)
