"""Names of files in configs, in a form that is valid on any machine.

| name | which file that is here |
|---|---|
| `assets:robots/h1/h1.usd` | that of the asset folder, `gm.ASSET_PATH` |
| `package:my_robots/lift.xml` | that of the installed Python package `my_robots` |
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from internutopia.macros import gm
from internutopia.util.extensions import extension_packages

_ASSETS, _PACKAGE = 'assets:', 'package:'


def portable(values: Any) -> Any:
    """Return plain data in which files of the asset folder and of extension packages have names valid on any machine.

    Extension packages are those that InternUtopia finds by their entry points, wherever they are installed.
    """
    prefixes = {folder: f'{_PACKAGE}{name}/' for name in extension_packages() if (folder := _folder_of(name))}
    prefixes[gm.ASSET_PATH] = _ASSETS

    def name(text: str) -> str:
        for parent in PurePath(text).parents if '/' in text else ():
            if (prefix := prefixes.get(str(parent))) is not None:
                return prefix + PurePath(text).relative_to(parent).as_posix()
        return text

    return _mapped(values, name)


def expanded(values: Any) -> Any:
    """Return plain data in which names of files are their paths on this machine."""
    return _mapped(values, local_path)


def local_path(name: str) -> str:
    """Return the path that a name of a file stands for on this machine; other texts, and packages not found, stay."""
    if name.startswith(_ASSETS):
        return f'{gm.ASSET_PATH}/{name.removeprefix(_ASSETS)}'
    if name.startswith(_PACKAGE):
        package, _, path = name.removeprefix(_PACKAGE).partition('/')
        folder = _folder_of(package)
        return name if folder is None else f'{folder}/{path}'
    return name


def missing_package(name: str) -> str | None:
    """Return the package that a name of a file refers to if it is not installed here, else None."""
    package = name.removeprefix(_PACKAGE).partition('/')[0]
    return package if name.startswith(_PACKAGE) and _folder_of(package) is None else None


def _folder_of(package: str) -> str | None:
    """Return the folder of a Python package, which is not imported; None if there is none of that name."""
    found = importlib.util.find_spec(package) if package.isidentifier() else None
    return next(iter((found and found.submodule_search_locations) or ()), None)


def _mapped(values: Any, change: Callable[[str], str]) -> Any:
    """Return a copy with each text in it changed, names of fields apart."""
    if isinstance(values, str):
        return change(values)
    if isinstance(values, dict):
        return {name: _mapped(value, change) for name, value in values.items()}
    return [_mapped(value, change) for value in values] if isinstance(values, list) else values
