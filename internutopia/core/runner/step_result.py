"""Step result: what a step gives the list API, env by env."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple


class StepResult(NamedTuple):
    """What came of a step in one env, all None for an env without an episode."""

    observation: dict[str, Any] | None
    reward: float | None
    terminated: bool | None
    truncated: bool | None
    info: dict[str, Any] | None


EMPTY_RESULT = StepResult(None, None, None, None, None)


def repeat_result(result: StepResult) -> StepResult:
    """The last result of an env that has ended, told again; shares nothing with it."""
    return copy.deepcopy(result)._replace(reward=0.0)
