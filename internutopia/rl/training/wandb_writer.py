"""Log writer for Weights & Biases: that of rsl_rl, with its files in the folder of the run.

Whether it logs to a server or to files (`WANDB_MODE=offline`), and as whom, is said by wandb's own environment
variables. Checkpoints are not uploaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from internutopia.rl.training.rsl_rl import WandbLogWriter


class WandbWriter(WandbLogWriter):
    """Writer of the scalars of TensorBoard to Weights & Biases, too.

    Args:
        log_dir: folder of the run, which gives it its name.
        project_name: project that the run is in.

    Raises:
        ValueError: Weights & Biases refuses to log, for want of a login, for example.
    """

    def __init__(self, log_dir: str, project_name: str):
        from wandb.errors import Error  # pyright: ignore[reportMissingImports] - an extra of its own

        chosen = os.environ.get('WANDB_DIR')
        os.environ['WANDB_DIR'] = chosen or log_dir  # the only way to set it: their writer takes no folder
        try:
            super().__init__(log_dir, project_name)
        except Error as error:
            hint = 'log in with `wandb login`, or set WANDB_MODE=offline, and go on with the run by --resume'
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
