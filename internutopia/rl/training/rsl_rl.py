"""Parts of rsl_rl that training uses; Weights & Biases is imported when it is first logged to.

rsl_rl imports wandb wherever that is installed, and wandb makes temporary folders when it is imported, which stay
where the process is killed or a signal ends it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """A module that is imported at the first access to one of its attributes."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:  # who looks through all modules wants nothing of it
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


@contextmanager
def _deferred(name: str) -> Iterator[None]:
    """Return a context in which importing a module that was not imported before defers that."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = _Deferred(name)
    try:
        yield
    finally:
        del sys.modules[name]


with _deferred('wandb'):
    from rsl_rl.algorithms import PPO
    from rsl_rl.extensions import Symmetry
    from rsl_rl.models import MLPModel
    from rsl_rl.runners import OnPolicyRunner
    from rsl_rl.storage import RolloutStorage
    from rsl_rl.utils.wandb_log_writer import WandbLogWriter

__all__ = ['MLPModel', 'OnPolicyRunner', 'PPO', 'RolloutStorage', 'Symmetry', 'WandbLogWriter']
