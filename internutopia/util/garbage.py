"""Garbage collection, deferred while many long-lived objects are made.

Python looks for garbage each time that 700 more objects live, and through all objects of the process when those that
outlived two such looks have become a quarter more. What a step of many envs returns outlives both within the step, and
is no garbage: the search through all envs, again and again, would take most of the step. Afterwards the observations
of the step before have gone, and nothing is due.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collections_put_off() -> Iterator[None]:
    """Defer Python's garbage collection to the end of the block, if it is enabled."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
