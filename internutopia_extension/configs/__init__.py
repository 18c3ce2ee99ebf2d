"""Configs of everything built in. Importing this package registers all of them by their `type`."""

from internutopia_extension.configs import controllers, metrics, objects, robots, sensors, tasks

__all__ = ['controllers', 'metrics', 'objects', 'robots', 'sensors', 'tasks']
