"""Recorded signatures: stand-ins take exactly the arguments that the real thing of their version takes.

A class or function of the stand-in is declared with the import path that it stands for. Calls are bound to the
recorded signature of that path, so an unknown argument is a TypeError, and what is not recorded for a version is not
there. Functions of the stand-in have those arguments only that they make use of; a call that gives another one is
refused with NotImplementedError.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from isaac_sim.simulator import current

C = TypeVar('C', bound=type)
F = TypeVar('F', bound=Callable[..., Any])

_FILE = Path(__file__).parents[1] / 'data' / 'isaac_sim_signatures.json'


@cache
def recording() -> dict[str, Any]:
    """What is recorded: by version, and the older names of things."""
    return json.loads(_FILE.read_text())


@cache
def signatures(version: str) -> dict[str, inspect.Signature]:
    """Signatures without self by import path, `package.Class.method`, of a version of Isaac Sim."""
    return {path: _signature(params) for path, params in recording()[version].items()}


def _signature(params: list[dict[str, Any]]) -> inspect.Signature:
    return inspect.Signature(
        [
            inspect.Parameter(
                param['name'],
                getattr(inspect.Parameter, param.get('kind', 'positional_or_keyword').upper()),
                default=_value(param['default']) if 'default' in param else inspect.Parameter.empty,
            )
            for param in params
        ]
    )


def _value(source: str) -> Any:
    try:
        return ast.literal_eval(source)
    except (SyntaxError, ValueError):
        return source  # an expression that only the real thing can evaluate


def stands_for(path: str) -> Callable[[F], F]:
    """Declare a function, by its import path."""

    def declare(function: F) -> F:
        return _bound(path, function, 0)

    return declare


def class_standing_for(path: str) -> Callable[[C], C]:
    """Declare a class, by its import path: its public methods, and how it is made."""

    def declare(cls: C) -> C:
        for name, value in list(vars(cls).items()):
            if name.startswith('_') and name != '__init__':
                continue
            if isinstance(value, classmethod):
                setattr(cls, name, classmethod(_bound(f'{path}.{name}', value.__func__, 1)))
            elif inspect.isfunction(value):
                setattr(cls, name, _bound(f'{path}.{name}', value, 1))
        return cls

    return declare


def _bound(path: str, function: Any, receivers: int) -> Any:
    """The function with the recorded signature, after so many arguments for self or cls."""
    takes = set(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        version = current().version
        signature = signatures(version).get(path)
        if signature is None:
            raise AttributeError(f'Isaac Sim {version} has no {path}')
        try:
            given = signature.bind(*args[receivers:], **kwargs).arguments
        except TypeError as error:
            raise TypeError(f'{path}{signature} of Isaac Sim {version}: {error}') from None
        given = {name: value for name, value in given.items() if not _is_default(signature.parameters[name], value)}
        if unknown := sorted(set(given) - takes):
            raise NotImplementedError(f'the stand-in for {path} does nothing with {", ".join(unknown)}')
        return function(*args[:receivers], **given)

    return call


def _is_default(parameter: inspect.Parameter, value: Any) -> bool:
    return value is parameter.default or (type(value) is type(parameter.default) and value == parameter.default)
