"""Data hub: reports of code outside of envs to the tasks that run in them."""

from __future__ import annotations

import threading
from typing import ClassVar, NoReturn

from internutopia.util.conventions import GONE_NAMES, raise_if_gone

__getattr__ = raise_if_gone(__name__)


class _DataHubType(type):
    def __getattr__(cls, name: str) -> NoReturn:
        message = GONE_NAMES[f'{__name__}.DataHub'].get(name, f'DataHub has no attribute {name!r}')
        raise AttributeError(message, name=name, obj=cls)


class DataHub(metaclass=_DataHubType):
    """Reports by task name, for the whole process. May be called from any thread."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _finished: ClassVar[set[str]] = set()

    @classmethod
    def set_episode_finished(cls, task_name: str) -> None:
        """Report that a task has reached its goal; the task ends with the next step if its class reads the report."""
        with cls._lock:
            cls._finished.add(task_name)

    @classmethod
    def get_episode_finished(cls, task_name: str) -> bool:
        """Return True if a task was reported to have reached its goal."""
        with cls._lock:
            return task_name in cls._finished

    @classmethod
    def finished_episodes(cls) -> set[str]:
        """Return the names of all tasks that were reported."""
        with cls._lock:
            return set(cls._finished)

    @classmethod
    def clear(cls, task_name: str) -> None:
        """Remove the report about a task."""
        with cls._lock:
            cls._finished.discard(task_name)
