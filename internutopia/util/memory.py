"""Memory: that of the machine, freed memory, and garbage collection while many long-lived objects are made."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache


def machine_memory() -> int | None:
    """Return the memory of this machine [bytes]; None where it is unknown."""
    try:
        return os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
    except (AttributeError, ValueError, OSError):
        return None


def return_free_memory() -> None:
    """Return freed memory to the operating system; does nothing where the C library is not glibc.

    glibc keeps what was freed below anything that is still in use. Compiling leaves much of that behind: small pieces
    that stay, between large ones that are free again. It takes about a millisecond per GB.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    """Return glibc's `malloc_trim`: https://man7.org/linux/man-pages/man3/malloc_trim.3.html."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, another system
        return None


@contextmanager
def collections_put_off() -> Iterator[None]:
    """Defer Python's garbage collection to the end of the block, if it is enabled.

    Python searches for garbage each time that 700 more objects live, and through all objects of the process when those
    that survived two searches have become a quarter more. What a step of many envs returns survives both within the
    step, and is no garbage: the search through all envs, again and again, would take most of the step. Afterwards the
    observations of the step before have gone, and nothing is due.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
