"""Policies: the interface by which the loop asks them, and functions of this process as policies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from internutopia.config import TaskCfg
from internutopia.util.imports import import_named

Action = int | Mapping[str, Any]
Observe = Mapping[str, Any]
StartFunction = Callable[[Any], Callable[[Observe], Action]]
"""Function that is called with the task config when an episode starts, and returns one that makes an action of each
observation of the robot it is called with: a number, for a robot with discrete actions, which is requested in every
step until it has ended; or `{controller: action}` for one step."""


class PolicyError(RuntimeError):
    """Raised or returned for a policy that gave no usable answer: it is late, raised an error, sent NaN, ..."""


class PolicyGoneError(ConnectionError):
    """Raised if a policy cannot be reached any more."""


@dataclass(frozen=True)
class Request:
    """Question of one env to a policy.

    Attributes:
        env_id: the env.
        first: True if it is the first question of its episode.
        content: what the actor asks.
    """

    env_id: int
    first: bool
    content: Any


class Actor(Protocol):
    """One episode's side of a policy: what it asks, and the actions of the robot."""

    def request(self, obs: Observe) -> Any | None:
        """Return what the policy has to be asked before the next step; None if nothing."""
        ...

    def receive(self, answer: Any) -> None:
        """Take the answer to the last request. PolicyError if it is none."""
        ...

    def action(self, obs: Observe) -> dict[str, Any]:
        """Return the robot's action of the next step."""
        ...


class Policy(Protocol):
    """What decides on actions, for all envs together."""

    @property
    def message_seconds(self) -> float:
        """Time spent on packing and unpacking messages so far [s]."""
        ...

    def start(self, task: TaskCfg) -> Actor:
        """Start an episode."""
        ...

    def answer(self, requests: Sequence[Request]) -> Sequence[Any]:
        """Answer the requests of several envs, in their order; an exception in place of an answer is that env's alone.

        PolicyGoneError if the policy cannot be reached.
        """
        ...


class FunctionPolicy:
    """Policy that is a function of this process, see `StartFunction`; it has the state of one episode at a time."""

    message_seconds = 0.0

    def __init__(self, function: StartFunction):
        self._function = function

    def start(self, task: TaskCfg) -> Actor:
        """Start an episode. TypeError if the function does not return a function."""
        act = self._function(task)
        if not callable(act):
            raise TypeError(f'policy(task): expected a function of an observation, got {act!r}')
        return _FunctionActor(act)

    def answer(self, requests: Sequence[Request]) -> Sequence[Any]:
        """Call the function of each episode."""
        answers: list[Any] = []
        for request in requests:
            act, obs = request.content
            try:
                answers.append(act(obs))
            except Exception as error:
                answers.append(error)
        return answers


def array_of(answer: Any, name: str) -> NDArray[Any]:
    """Return an array of an answer. PolicyError if there is none of that name, or if it is ragged."""
    if not isinstance(answer, Mapping):
        raise PolicyError(f'expected a mapping with {name!r}, got {type(answer).__name__}')
    if name not in answer:
        raise PolicyError(f'the reply has no {name!r}; it has {sorted(map(str, answer))}')
    try:
        return np.asarray(answer[name])
    except ValueError:
        raise PolicyError(f'{name!r}: expected rows of one length, got {answer[name]!r:.200}') from None


def _number(answer: Any) -> int:
    """Return the number of an action, from a number or array of any type. PolicyError if it is none."""
    try:
        number = np.nan if isinstance(answer, str) else np.asarray(answer, float).item()
    except (TypeError, ValueError):
        number = np.nan
    if not float(number).is_integer():
        raise PolicyError(f'expected an action, {{controller: ...}} or the number of one, got {answer!r:.80}')
    return int(number)


class _FunctionActor:
    """Actor that asks for the next action when the last one has ended."""

    def __init__(self, act: Callable[[Observe], Action]):
        self._act = act
        self._given: Action | None = None

    def request(self, obs: Observe) -> Any | None:
        under_way = self._given is not None and not isinstance(self._given, Mapping)
        if under_way and not next(iter(obs['controllers'].values()))['finished']:
            return None
        return self._act, obs

    def receive(self, answer: Any) -> None:
        self._given = answer if isinstance(answer, Mapping) else _number(answer)

    def action(self, obs: Observe) -> dict[str, Any]:
        if isinstance(self._given, Mapping):
            return dict(self._given)
        return {next(iter(obs['controllers'])): [self._given]}


def named_function(text: str, option: str) -> StartFunction:
    """Return the function `module:function` that a user names. ValueError if there is none, with the option's name."""
    module_name, _, attribute = text.partition(':')
    if not (module_name and attribute) or attribute.isdecimal():
        raise ValueError(f'{option} {text}: expected module:function, or an address such as http://127.0.0.1:8000')
    module = import_named(module_name)
    if not hasattr(module, attribute):
        raise ValueError(f'{option} {text}: module {module_name!r} has no {attribute!r}')
    function = getattr(module, attribute)
    if not callable(function):
        raise ValueError(f'{option} {text}: expected a function of a task, got {function!r}')
    return cast(StartFunction, function)
