"""Parts of rsl_rl that training uses; Weights & Biases is imported when it is first logged to.

rsl_rl imports wandb wherever that is installed, and wandb makes temporary folders when it is imported, which stay
where the process is killed or a signal ends it. Whether it logs to a server or to files (`WANDB_MODE=offline`), and as
whom, is set by its own environment variables. Checkpoints are not uploaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from typing_extensions import override


class _Deferred(ModuleType):
    """A module that is imported at the first access to one of its attributes."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:  # code that goes through all modules needs none of it
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


class WandbWriter(WandbLogWriter):
    """Writer of the scalars of TensorBoard to Weights & Biases, too.

    Args:
        log_dir: folder of the run, which gives it its name.
        project_name: project that the run is in.

    Raises:
        ValueError: Weights & Biases refuses to log, for lack of a login, for example.
    """

    def __init__(self, log_dir: str, project_name: str):
        from wandb.errors import Error  # pyright: ignore[reportMissingImports] - an extra of its own

        chosen = os.environ.get('WANDB_DIR')
        os.environ['WANDB_DIR'] = chosen or log_dir  # the only way to set it: their writer takes no folder
        try:
            super().__init__(log_dir, project_name)
        except Error as error:
            hint = 'log in with `wandb login`, or set WANDB_MODE=offline, and continue the run with --resume'
            raise ValueError(f'Weights & Biases: {error}; {hint}') from error
        finally:
            if not chosen:
                del os.environ['WANDB_DIR']

    @override
    def store_config(self, env_cfg: Mapping[str, Any] | object, train_cfg: dict[str, Any]) -> None:
        import wandb  # pyright: ignore[reportMissingImports] - an extra of its own

        wandb.config.update({'train_cfg': train_cfg, 'env_cfg': env_cfg})  # theirs takes no mapping

    @override
    def save_model(self, model_path: str, it: int) -> None:
        """Do nothing: a checkpoint is a draft when it is saved, and gets its name then."""
