"""Runner: steps and resets the envs of one process."""

from internutopia.core.runner.simulator import SimulatorRunner

__all__ = ['SimulatorRunner']
