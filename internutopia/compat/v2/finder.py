"""Finder of modules of InternUtopia 2.x that have no file here: it comes after all others.

Those in the table of what moved have the public names of the module that has their classes now. In those of which
nothing is left, each name of `internutopia.compat.v2.gone` is an ImportError that says what to use instead.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from typing_extensions import override

from internutopia.compat.v2.gone import GONE
from internutopia.compat.v2.moved import MOVED
from internutopia.util.conventions import raise_if_gone

_CLASS = 'internutopia.core.datahub.DataHub'
_MODULES = {*MOVED, *(row.place for row in GONE if '.' in row.place)} - {_CLASS}
_PACKAGES = {name.rpartition('.')[0] for name in _MODULES}


class _Finder(MetaPathFinder, Loader):
    """Finder and loader of modules of the tables, and of the packages that they are in."""

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_package = any(package == fullname or package.startswith(f'{fullname}.') for package in _PACKAGES)
        if path is None or not (is_package or fullname in _MODULES):
            return None
        return ModuleSpec(fullname, self, is_package=is_package)

    @override
    def exec_module(self, module: ModuleType) -> None:
        """Give a module the names that it has now, and errors for those that are gone."""
        name = module.__name__
        if name in MOVED:
            moved = vars(importlib.import_module(MOVED[name]))
            vars(module).update({each: value for each, value in moved.items() if not each.startswith('_')})
        vars(module).update(__doc__='A module of InternUtopia 2.x.', __getattr__=raise_if_gone(name))


_FINDER = _Finder()


def install() -> None:
    """Make the modules importable; may be called again."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
