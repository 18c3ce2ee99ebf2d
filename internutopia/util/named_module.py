"""Modules that a user names, on the command line or in a program: the only ones that are imported by a name."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType


def import_named(name: str) -> ModuleType:
    """Import a module that the user has named, from the current folder, too, if none of that name is installed.

    Names that come out of files are data, and never for this function (`docs/security.md`).

    Raises:
        ValueError: there is no such module.
    """
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)  # behind all others: no file here takes the place of an installed module
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f'{name}.'.startswith(f'{error.name}.'):
            raise  # the module is there, and needs another one
        raise ValueError(f'there is no module {name!r} (looked for in the current folder, too)') from error
