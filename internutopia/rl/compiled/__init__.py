"""Compiled terms: what terms compute in a step as machine code, by LLVM.

Terms are traced (`traced.py`): they are called once with a state (`state.py`) whose arrays note what is done to them
(`nodes.py`), and what comes out is written as a function that runs over envs (`kernel.py`). Nothing is translated from
Python: numpy's own indexing, broadcasting and rules of types make the trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec

from internutopia.config.learning import LearningCfg, ObservationTermCfg
from internutopia.core.robot.controller import BaseController
from internutopia.engines.batched.world import BatchedWorld
from internutopia.rl.compiled.step import CompiledStep
from internutopia.rl.managers import EpisodeArrays, RewardManager
from internutopia.rl.observer import ObservationManager
from internutopia.rl.state import RobotState
from internutopia.util.imports import install_hint
from internutopia.util.log import warn_once

__all__ = ['CompiledStep', 'compile_step']


def compile_step(
    learning: LearningCfg,
    state: RobotState,
    episodes: EpisodeArrays,
    controller: BaseController,
    rewards: RewardManager,
    observers: Iterable[tuple[ObservationManager, Sequence[ObservationTermCfg]]],
) -> CompiledStep | None:
    """Compile the supported parts of a step, see `CompiledStep`; None, and a warning with the reason, if none is."""
    world = state.world
    if state.arrays.on_device or not isinstance(world, BatchedWorld):
        reason = "the arrays are a device's" if state.arrays.on_device else 'the physics engine shows no arrays'
    elif find_spec('llvmlite') is None:
        reason = f'llvmlite is not installed: {install_hint("compile")}'
    else:
        return CompiledStep(learning, state, world, episodes, controller, rewards, observers)
    warn_once('LearningCfg.compiled: terms are not compiled, %s', reason)
    return None
