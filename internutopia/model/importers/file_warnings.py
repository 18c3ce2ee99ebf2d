"""Warnings of one file: contents that the importer cannot represent, collected while it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pxr import Usd

_NAMED = 5  # things that a warning names before it only counts the rest


class FileWarnings:
    """Warnings by what was dropped; prims of one kind share a line.

    Attributes:
        incomplete: whether layers of the file are missing, so that other prims may refer to what is not there.
    """

    def __init__(self) -> None:
        self.incomplete = False
        self._prims: dict[str, dict[str, None]] = {}  # paths in order, each once

    def add(self, what: str, prim: Usd.Prim | str) -> None:
        """Warn that `what` holds for a prim (or its path)."""
        path = prim if isinstance(prim, str) else str(prim.GetPath())
        self._prims.setdefault(what, {})[path] = None

    def lines(self) -> list[str]:
        """Return one line for each kind: what, then the prims."""
        return [f'{what}: {listed(list(prims))}' for what, prims in self._prims.items()]


def listed(names: list[str]) -> str:
    """Return names with commas; of many, the first ones and how many more there are."""
    rest = len(names) - _NAMED
    # one more is named rather than counted
    return ', '.join(names) if rest <= 1 else f'{", ".join(names[:_NAMED])} and {rest} more'
