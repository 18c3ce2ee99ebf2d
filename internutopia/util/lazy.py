"""Lazy names: public names of a package that are imported from their modules when they are used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from internutopia.util.install import install_hint


def lazy(
    package: str, modules: Mapping[str, str], extra: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    Args:
        package: Its name.
        modules: For each name, the module that defines it; `module:attribute` if it is called something else there.
        extra: What has to be installed for them; an ImportError for a missing package says so.
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f'module {package!r} has no attribute {name!r}')
        module, _, attribute = modules[name].partition(':')
        try:
            return getattr(import_module(module), attribute or name)
        except ModuleNotFoundError as error:
            if extra is None:
                raise
            raise ImportError(f'{package} needs {error.name}: {install_hint(extra)}') from error
        except AttributeError as error:  # Python would say that there is no such name, and nothing of the cause
            raise ImportError(f'{package}.{name} cannot be imported: {error}') from error

    return get, lambda: sorted({*vars(sys.modules[package]), *modules})
