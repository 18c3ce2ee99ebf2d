"""Commands: the frame in which the body of a command runs, which separates mistakes of the user from crashes."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn, ParamSpec, cast

import typer

from internutopia.rendering.gl import NoOpenGLError
from internutopia.util.imports import COMMAND
from internutopia.util.interrupts import INTERRUPTED, interrupts

ArgumentsT = ParamSpec('ArgumentsT')

_OUR_PACKAGES = ('internutopia', 'internutopia_extension')


def command(title: str) -> Callable[[Callable[ArgumentsT, int]], Callable[ArgumentsT, NoReturn]]:
    """Decorate the body of a command, which returns the exit code.

    The extensions are loaded first. Mistakes are printed behind the title, in which `{name}` stands for an argument;
    crashes are raised. The signals that stop a command are those of `interrupts`.

    A parameter whose type is a dataclass stands for options: those of the fields, which are declared as parameters of a
    command are.
    """

    def decorate(body: Callable[ArgumentsT, int]) -> Callable[..., NoReturn]:
        signature, groups = _spread(body)

        @functools.wraps(body)
        def run(**given: Any) -> NoReturn:
            name = title.format(**given)
            for parameter, group in groups.items():
                fields = {field.name: given.pop(field.name) for field in dataclasses.fields(group)}
                given[parameter] = group(**fields)
            raise typer.Exit(_exit_code(name, functools.partial(body, **given)))

        vars(run)['__signature__'] = signature
        return run

    return decorate


def _spread(body: Callable[..., int]) -> tuple[inspect.Signature, dict[str, type[Any]]]:
    """Return the signature of a command with the fields of its dataclasses, and these by parameter."""
    groups: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(body, eval_str=True).parameters.values():
        if dataclasses.is_dataclass(parameter.annotation):
            group = groups[parameter.name] = cast('type[Any]', parameter.annotation)
            parameters += inspect.signature(group, eval_str=True).parameters.values()
        else:
            parameters.append(parameter)
    by_keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    return inspect.Signature(by_keyword), groups


def _exit_code(title: str, body: Callable[[], int]) -> int:
    from internutopia.util.imports import load_extensions

    with interrupts() as interruption:
        try:
            load_extensions()
            return body()
        except KeyboardInterrupt:
            return interruption.exit_code or INTERRUPTED + signal.SIGINT
        except Exception as error:
            if interruption.is_set():  # an interrupted call may raise anything
                return interruption.exit_code
            if not is_mistake(error):
                raise
            print(f'internutopia {title}: {describe(error)}', file=sys.stderr)
            return 2


def is_mistake(error: Exception) -> bool:
    """Return True if a config, an action or a file is wrong, rather than code.

    InternUtopia raises ValueError, KeyError and OSError for these, and NotImplementedError with a message for what an
    engine cannot do. The same raised under a class that an extension package registered is a crash: its author needs
    the traceback.
    """
    from internutopia.core.registries import REGISTRIES

    if isinstance(error, ImportError):
        return COMMAND in str(error)  # an extra is missing
    if isinstance(error, NoOpenGLError):
        return True
    if not (
        isinstance(error, ValueError | KeyError | OSError) or (isinstance(error, NotImplementedError) and error.args)
    ):
        return False
    modules = {cls.__module__ for registry in REGISTRIES.values() for cls in registry.values()}
    foreign = {module for module in modules if module.partition('.')[0] not in _OUR_PACKAGES}
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return not any(frame.f_globals.get('__name__') in foreign for frame in frames)


def describe(error: Exception) -> str:
    """Format an error as one block of text; of a ValidationError every fault, with its place in the file."""
    from pydantic import ValidationError

    notes = ''.join(f'\n  {note}' for note in getattr(error, '__notes__', ()))
    if isinstance(error, ValidationError):
        faults = [
            f'\n  {_place(fault["loc"])}: {fault["msg"]}{_given(fault["input"], fault["msg"])}'
            for fault in error.errors(include_url=False, include_context=False)
        ]
        return f'{len(faults)} mistake{"s" * (len(faults) > 1)} in the config' + ''.join(faults) + notes
    if isinstance(error, OSError) and error.strerror:
        return ('' if error.filename is None else f'{error.filename}: ') + error.strerror + notes
    return str(error.args[0] if isinstance(error, KeyError) and error.args else error) + notes


def _given(value: object, message: str) -> str:
    """Format the wrong value, if it is a single one that the message does not contain."""
    shown = f'{value!r:.80}'
    return f', got {shown}' if isinstance(value, int | float | str) and shown not in message else ''


def _place(location: tuple[int | str, ...]) -> str:
    """Return `task_configs[0].robots[1].position` for `('task_configs', 0, 'robots', 1, 'position')`."""
    text = ''.join(f'[{part}]' if isinstance(part, int) else f'.{part}' for part in location)
    return text.removeprefix('.') or 'config'
