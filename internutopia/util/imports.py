"""Imports by name: lazy public names, entry points of extension packages, modules that a user names, install hints."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from internutopia.util.log import log

_IN_CHECKOUT = (Path(__file__).parents[2] / 'pyproject.toml').is_file()
COMMAND = "pip install -e '.[" if _IN_CHECKOUT else "pip install 'internutopia3["


def install_hint(extra: str) -> str:
    """Return the command that installs an extra, for the way in which InternUtopia was installed."""
    return f"{COMMAND}{extra}]'" + ' in the checkout of InternUtopia' * _IN_CHECKOUT


def lazy(
    package: str, modules: Mapping[str, str], extra: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    Args:
        package: its name.
        modules: module that defines each name; `module:attribute` if its name there is another one.
        extra: extra of the distribution that they need, for the ImportError about a missing package.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        module, _, attribute = modules[name].partition(':')
        try:
            return getattr(importlib.import_module(module), attribute or name)
        except ModuleNotFoundError as error:
            if extra is None:
                raise
            raise ImportError(f'{package} needs {error.name}: {install_hint(extra)}') from error
        except AttributeError as error:  # Python's own error would not name the cause
            raise ImportError(f'{package}.{name} cannot be imported: {error}') from error

    return get, lambda: sorted({*vars(sys.modules[package]), *modules})


def import_named(name: str) -> ModuleType:
    """Import a module that the user has named, from the current folder, too, if none of that name is installed.

    Names that come out of files are data, and never for this function (`docs/security.md`).

    Raises:
        ValueError: there is no such module, or it ends the program.
    """
    if not all(part.isidentifier() for part in name.split('.')):
        raise ValueError(f'{name!r} is no name of a module: expected one such as my_terms or my_package.my_terms')
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)  # behind all others: no file here takes the place of an installed module
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f'{name}.'.startswith(f'{error.name}.'):
            raise  # the module is there, and needs another one
        raise ValueError(f'there is no module {name!r} (the current folder was searched, too)') from error
    except SystemExit as error:
        raise ValueError(f'module {name!r} calls sys.exit({error.code!r}) when it is imported') from error


def load_extensions() -> None:
    """Register robots, controllers, tasks and so on: call the functions of the group `internutopia.extensions`."""
    for_each_entry_point('internutopia.extensions', lambda register: register())


def for_each_entry_point(group: str, use: Callable[[Any], object]) -> None:
    """Pass the objects of a group of entry points to a function, one by one; one that fails costs a warning."""
    for entry_point in importlib.metadata.entry_points(group=group):
        try:
            use(entry_point.load())
        except Exception as error:  # whatever is wrong with it, runs that do without it go on
            log.warning(
                "the extension package behind entry point '%s' (%s) cannot be loaded: %s: %s",
                entry_point.name,
                entry_point.value,
                type(error).__name__,
                error,
            )


def load_entry_point(group: str, name: str) -> Any:
    """Return the object behind an entry point, imported now. ImportError if no installed package announces it."""
    for entry_point in importlib.metadata.entry_points(group=group, name=name):
        return entry_point.load()
    raise ImportError(f'no installed package announces {name!r} in entry points {group!r}: install internutopia again')


def extension_packages() -> set[str]:
    """Return the names of the Python packages that announce extensions of InternUtopia."""
    every = importlib.metadata.entry_points()
    ours = (point for group in every.groups if group.startswith('internutopia.') for point in every.select(group=group))
    return {point.module.partition('.')[0] for point in ours}
