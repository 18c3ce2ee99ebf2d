"""Registry of terms, and the check of their parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Annotated, Any, Literal, get_args, get_type_hints

import numpy as np
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import ErrorDetails

from internutopia.config.learning import LearningCfg, TermCfg
from internutopia.rl.symmetry import TermMirror
from internutopia.util import did_you_mean

Kind = Literal['observation', 'reward', 'termination', 'metric', 'command', 'randomization', 'curriculum']
KINDS: tuple[Kind, ...] = get_args(Kind)
CommandMarker = Literal['point', 'velocity']
LookUp = Callable[[Any, str, Mapping[str, Any]], Callable[..., Any]]
"""Look-up of a term by kind, name and parameters."""
_IS_COMMAND = object()
CommandName = Annotated[str, _IS_COMMAND]
"""Parameter of a term that names a command: making envs fails if there is no command of that name."""


@dataclass(frozen=True)
class RegisteredTerm:
    """A function, and the options that `term` registered it with."""

    function: Callable[..., Any]
    mirror: TermMirror | None
    marker: CommandMarker | None
    pure: bool


_FINITE = ConfigDict(allow_inf_nan=False)  # of the numbers in parameters
_terms: dict[Kind, dict[str, RegisteredTerm]] = {kind: {} for kind in KINDS}


def term(
    kind: Kind,
    name: str | None = None,
    *,
    mirror: TermMirror | None = None,
    marker: CommandMarker | None = None,
    pure: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: make a function the term of that kind called `name` (default: the function's own name).

    Args:
        kind: what it is for.
        name: what it is called.
        mirror: of an observation or command: what it is when left and right are swapped, see `rl.symmetry`. A sign for
            each element, or a function of the state and the term's parameters.
        marker: of a command: what images show of it. `'point'`: (x, y) or (x, y, z) in the env frame [m];
            `'velocity'`: forward, lateral [m/s] and yaw speed [rad/s] of the base.
        pure: of an observation, reward or termination: whether what it returns follows from what `state` shows and from
            its parameters alone, so that `LearningCfg.compiled` may compile it.
    """
    if kind not in _terms:
        raise ValueError(f'there is no term of kind {kind!r}; {did_you_mean(kind, KINDS)}')

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _terms[kind][name or function.__name__] = RegisteredTerm(function, mirror, marker, pure)
        return function

    return register


pure_term = partial(term, pure=True)
"""Decorator: as `term`, for functions of the state and their parameters."""


def terms_of(learning: LearningCfg) -> list[tuple[Kind, str, RegisteredTerm]]:
    """Return the registered terms of those names, for `add_terms` in another process."""
    lists = learning.terms(False), learning.terms(True), learning.rewards, learning.terminations
    others = learning.metrics.values(), learning.commands.values(), learning.randomizations, learning.curricula
    names = {cfg.term for configs in (*lists, *others) for cfg in configs}
    return [(kind, name, known[name]) for kind, known in _terms.items() for name in known if name in names]


def add_terms(terms: Iterable[tuple[Kind, str, RegisteredTerm]]) -> None:
    """Register the terms of `terms_of` in another process."""
    for kind, name, registered in terms:
        _terms[kind][name] = registered


def registered_terms(kind: Kind) -> dict[str, Callable[..., Any]]:
    """Return the terms of a kind by name."""
    return {name: registered.function for name, registered in _terms[kind].items()}


def look_up_mirror(kind: Kind, name: str) -> TermMirror | None:
    """Return the mirror of a registered term; None if it has none."""
    return _terms[kind][name].mirror


def look_up_marker(name: str) -> CommandMarker | None:
    """Return the marker that images show for a registered command term; None if it has none."""
    return _terms['command'][name].marker


def is_pure(kind: Kind, name: str) -> bool:
    """Return True if a registered term is a function of the state and its parameters."""
    return _terms[kind][name].pure


def check_commands(place: str, kind: Kind, cfg: TermCfg, commands: Collection[str]) -> None:
    """Raise ValueError naming the place if a registered term names a missing command."""
    registered = _terms[kind].get(cfg.term)
    for parameter, hint in {} if registered is None else _hints_of(registered.function).items():
        name = cfg.params.get(parameter)
        if _IS_COMMAND in getattr(hint, '__metadata__', ()) and isinstance(name, str) and name not in commands:
            raise ValueError(
                f'learning.{place}: {kind} term {cfg.term!r} names the command {name!r}, which does not exist; '
                f'{did_you_mean(name, commands)}'
            )


def look_up_term(kind: Kind, name: str, params: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the term of a kind and name with its parameters filled in.

    ValueError naming what is wrong: a name that is not registered, parameters that the function does not take, or
    values of another type than its annotations.
    """
    if name not in _terms[kind]:
        raise ValueError(f'there is no {kind} term {name!r}; {did_you_mean(name, _terms[kind])}')
    function = _terms[kind][name].function
    given = 2 if kind in ('command', 'randomization', 'curriculum') else 1  # `state`, and `env_ids`
    taken = list(inspect.signature(function).parameters)[given:]
    for parameter in params:
        if parameter not in taken:
            raise ValueError(f'{kind} term {name!r} takes no {parameter!r}; {did_you_mean(parameter, taken)}')
    missing = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name in taken and parameter.name not in params and parameter.default is parameter.empty
    ]
    if missing:
        raise ValueError(f'{kind} term {name!r} needs {", ".join(map(repr, missing))}')
    values = {parameter: _checked(kind, name, parameter, value) for parameter, value in params.items()}
    _check_ends(kind, name, values)
    return partial(function, **values)


def _checked(kind: Kind, name: str, parameter: str, value: Any) -> Any:
    """Return the value of a parameter, converted to the type in the function's signature."""
    check = _checks_of(_terms[kind][name].function).get(parameter)
    if check is None:
        return value
    try:
        return check.validate_python(value.tolist() if isinstance(value, np.ndarray) else value)
    except ValidationError as error:
        mistakes = '; '.join(_message(parameter, mistake) for mistake in error.errors(include_url=False))
        raise ValueError(f'{kind} term {name!r}: {mistakes}') from None


def _check_ends(kind: Kind, name: str, values: Mapping[str, Any]) -> None:
    """Raise ValueError if parameters called `low` and `high`, numbers or several of them, are no ranges."""
    low, high = np.asarray(values.get('low')), np.asarray(values.get('high'))
    if low.dtype.kind not in 'iuf' or high.dtype.kind not in 'iuf':
        return
    if low.shape != high.shape:
        raise ValueError(f'{kind} term {name!r}: low={values["low"]} and high={values["high"]} differ in length')
    if (low > high).any():
        raise ValueError(f'{kind} term {name!r}: low={values["low"]} is above high={values["high"]}')


def _message(parameter: str, mistake: ErrorDetails) -> str:
    """Return the message of an error of pydantic: place, value, and what is allowed."""
    place, message = mistake['loc'], mistake['msg']
    if mistake['type'] == 'missing':
        *place, missing = place
        message = f'[{missing!r}] is missing'
    return f'{parameter}{"".join(f"[{key!r}]" for key in place)}={mistake["input"]!r}: {message}'


@cache
def _checks_of(function: Callable[..., Any]) -> dict[str, TypeAdapter[Any]]:
    """Return checks of a term's parameters, of those whose annotations pydantic supports."""
    checks = {}
    for parameter, hint in _hints_of(function).items():
        try:
            checks[parameter] = TypeAdapter(hint, config=_FINITE)
        except PydanticUserError:  # an array, a class of one's own
            continue
    return checks


def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return annotations of a term's parameters; none if some cannot be resolved."""
    try:
        return get_type_hints(function, include_extras=True)
    except NameError:  # of what is imported for type checkers only
        return {}
