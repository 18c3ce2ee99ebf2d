"""Extension packages: installed packages that announce what they add by entry points."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from typing import Any

from internutopia.util import log


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
