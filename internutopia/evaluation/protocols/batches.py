"""Batches: observations of several envs as one, an answer for several envs as many, and the wait for a policy."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from internutopia.evaluation.policy import PolicyError, PolicyGoneError, Request, array_of

_PAUSE = 0.2  # s, between two tries

ResultT = TypeVar('ResultT')


def stacked(observations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return observations as one: arrays with a row for each, texts as lists."""
    first = observations[0]
    return {
        name: np.stack([each[name] for each in observations])
        if isinstance(first[name], np.ndarray)
        else [each[name] for each in observations]
        for name in first
    }


def split(answer: Any, count: int) -> list[dict[str, Any]]:
    """Return an answer for several envs as one for each. PolicyError if it is not for as many.

    Of what has no row for each env, such as timing, each gets all.
    """
    if not isinstance(answer, Mapping):
        raise PolicyError(f'expected a mapping of arrays, got {type(answer).__name__}')
    arrays = {name: array_of(answer, name) for name, value in answer.items() if isinstance(value, np.ndarray | list)}
    for name, values in arrays.items():
        if values.ndim == 0 or len(values) != count:
            raise PolicyError(f'{name!r}: expected rows for {count} envs, got shape {values.shape}')
    if count > 1 and not arrays:
        raise PolicyError(f'expected lists or arrays with an entry for each of {count} envs, got {dict(answer)!r:.200}')
    return [{**answer, **{name: values[row] for name, values in arrays.items()}} for row in range(count)]


def asked(ask: Callable[[Sequence[Request]], list[Any]], requests: Sequence[Request], batched: bool) -> list[Any]:
    """Return the answers to requests sent in one batch, or one by one with an error for each that fails."""
    if batched:
        return ask(requests)
    answers: list[Any] = []
    for request in requests:
        try:
            answers += ask([request])
        except PolicyError as error:
            answers.append(error)
    return answers


def wait_for(
    attempt: Callable[[], ResultT], address: str, timeout: float, errors: tuple[type[Exception], ...]
) -> ResultT:
    """Try until it works, for as long as a policy may take to start. PolicyGoneError with the last error."""
    end = time.monotonic() + timeout
    while True:
        try:
            return attempt()
        except errors as error:
            if time.monotonic() > end:
                text = str(error) or type(error).__name__
                raise PolicyGoneError(f'no policy responds at {address} within {timeout:g} s: {text}') from error
            time.sleep(_PAUSE)
