"""Robots, controllers, sensors, tasks, objects, metrics and rewards that come with InternUtopia."""

import importlib
import importlib.util

_PACKAGES = ('controllers', 'interactions', 'metrics', 'objects', 'rewards', 'robots', 'sensors', 'tasks', 'terms')


def import_extensions() -> None:
    """Register the built-in classes under their `type`; to be called before an `Env` is built."""
    for name in _PACKAGES:
        package = f'{__name__}.{name}'
        if importlib.util.find_spec(package):
            importlib.import_module(package)
