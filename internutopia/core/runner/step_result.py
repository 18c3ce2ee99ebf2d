"""Step result: what a step gives the list API, env by env."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

_IMMUTABLE = (bool, int, float, str, type(None))


class StepResult(NamedTuple):
    """What came of a step in one env, all None for an env without an episode."""

    observation: dict[str, Any] | None
    reward: float | None
    terminated: bool | None
    truncated: bool | None
    info: dict[str, Any] | None

    def __deepcopy__(self, memo: dict[int, Any]) -> StepResult:
        return StepResult(*map(_copied, self))


EMPTY_RESULT = StepResult(None, None, None, None, None)


def repeat_result(result: StepResult) -> StepResult:
    """The last result of an env that has ended, told again; shares nothing with it."""
    return copy.deepcopy(result)._replace(reward=0.0)


def _copied(value: Any) -> Any:
    """A deep copy: of what results mostly are, in a quarter of the time; near the end of a run most envs have ended."""
    kind = type(value)
    if kind is dict:
        return {key: _copied(item) for key, item in value.items()}
    if kind is np.ndarray and not value.dtype.hasobject:
        return value.copy()
    return value if kind in _IMMUTABLE else copy.deepcopy(value)
