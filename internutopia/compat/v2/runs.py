"""2.x behaviour of processes: what they import and reserve for a run."""

from __future__ import annotations

from internutopia.compat.omni.finder import install
from internutopia.config import Config


def install_stand_ins(config: Config) -> None:
    """Make modules of Isaac Sim importable if the run's code may import them."""
    if config.simulator.omni_compat or config.compat == '2.x':
        install()


def ignores_gpus(config: Config) -> bool:
    """Return whether GPUs that a distributed run requests are not reserved: scripts of 2.x had to request some."""
    return config.compat == '2.x' and config.simulator.device == 'cpu'
