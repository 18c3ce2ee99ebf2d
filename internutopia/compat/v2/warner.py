"""Warnings of a run with `compat='2.x'`, each given once."""

from __future__ import annotations

from collections.abc import Hashable

from internutopia.util import log


class Warner:
    """Logger of warnings, each of which is given once."""

    def __init__(self) -> None:
        self._warned: set[Hashable] = set()

    def warn(self, message: str, about: Hashable = None) -> None:
        """Log a warning, once about each thing; without one, each message once."""
        key = message if about is None else about
        if key not in self._warned:
            self._warned.add(key)
            log.warning("compat='2.x': %s", message)
