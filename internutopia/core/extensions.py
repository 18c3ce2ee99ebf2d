"""Extension packages: installed packages that register robots, controllers, tasks and so on."""

import importlib.metadata

from internutopia.core.util import log


def load_extensions() -> None:
    """Call the functions behind the entry points of group `internutopia.extensions`; one that fails costs a warning."""
    for entry_point in importlib.metadata.entry_points(group='internutopia.extensions'):
        try:
            entry_point.load()()
        except Exception as error:  # whatever is wrong with it, runs that do without it go on
            log.warning(
                "the extension package behind entry point '%s' (%s) cannot be loaded: %s: %s",
                entry_point.name,
                entry_point.value,
                type(error).__name__,
                error,
            )
