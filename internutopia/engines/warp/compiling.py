"""Compiling: a bar in a terminal while Warp compiles kernels, which takes up to minutes when they are used first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import warp as wp

from internutopia.util.progress import progress_bar


@contextmanager
def compiling_shown(device: wp.Device) -> Iterator[None]:
    """Show how many modules of kernels have been compiled for a device in this context."""
    with (
        progress_bar(f'compiling kernels for {device.alias}', None) as advance,
        wp.ScopedLogger(_CompiledModules(wp.get_logger(), wp.config.log_level, advance)),
        wp.ScopedLogLevel(min(wp.config.log_level, wp.LOG_INFO)),
    ):
        yield


class _CompiledModules:
    """Logger of Warp that counts the modules which were compiled, and passes on what `level` lets through."""

    def __init__(self, logger: Any, level: int, advance: Callable[[], None]):
        self._logger, self._level, self._advance = logger, level, advance
        self.debug, self.error = logger.debug, logger.error

    def info(self, message: str) -> None:
        if message.endswith('(compiled)'):
            self._advance()
        if self._level <= wp.LOG_INFO:
            self._logger.info(message)

    def warning(self, message: str, category: Any = None, stacklevel: int = 1) -> None:
        if self._level <= wp.LOG_WARNING:
            self._logger.warning(message, category, stacklevel + 1)
