"""Compiled terms: what terms compute in a step as machine code, by LLVM.

Terms are traced (`traced.py`): they are called once with a state (`state.py`) whose arrays note what is done to them
(`nodes.py`), and what comes out is written as a function that runs over envs (`kernel.py`). Nothing is translated from
Python: numpy's own indexing, broadcasting and rules of types make the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec

from internutopia.core.config.learning import LearningCfg, ObservationTermCfg
from internutopia.core.util.install import install_hint
from internutopia.core.util.log import warn_once
from internutopia.core.world.batched.world import BatchedWorld
from internutopia.rl.compiled.terms import CompiledTerms
from internutopia.rl.managers import ObservationManager, RewardManager
from internutopia.rl.state import RobotState

__all__ = ['CompiledTerms', 'compile_terms']


def compile_terms(
    learning: LearningCfg,
    state: RobotState,
    rewards: RewardManager,
    observers: Iterable[tuple[ObservationManager, Sequence[ObservationTermCfg]]],
) -> CompiledTerms | None:
    """Terms that will be compiled, see `CompiledTerms`; None, and a warning that says why, if they cannot be here."""
    world = state.world
    if state.arrays.on_device or not isinstance(world, BatchedWorld):
        reason = "the arrays are a device's" if state.arrays.on_device else 'the physics engine shows no arrays'
    elif find_spec('llvmlite') is None:
        reason = f'llvmlite is not installed: {install_hint("compile")}'
    else:
        return CompiledTerms(learning, state, world, rewards, observers)
    warn_once('LearningCfg.compiled: terms are not compiled, %s', reason)
    return None
