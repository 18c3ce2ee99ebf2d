"""State of envs, from which they continue bit for bit.

A `SceneState` holds, for each env that it was taken from:

- physics: everything that the engine integrates (positions, velocities, activations, controls, forces applied, mocap
  poses, warm start of the solver, time) and what was changed in this env's model (gains, masses, friction, ...);
- the last measurements: efforts, contact forces, readings of physics by sensors;
- the episode: number of steps, whether it ended, its last result, the key of its noise;
- the state of the Python objects (see `object_state`): task, metrics, reward, robots, controllers, sensors;
- the form of all that (see `state_form`), in which alone it is taken again.

The step counter of the Env, which says when frames are due, follows if the state is put into all envs that hold an
episode. Not in it: the queue of episodes, results that were written, and pictures that were taken.

A state is plain data that can be pickled, also into another process; it fits every env that runs the same task config
on the same models.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from internutopia.core.runner.state_form import Form
from internutopia.core.runner.step_result import StepResult
from internutopia.engines.base import PhysicsState

VERSION = 2


@dataclass(frozen=True)
class EnvState:
    """State of one env. `task` is its task config as JSON by field, `step_dt` the length of its steps [s]."""

    task: Mapping[str, str]
    step_dt: float
    physics: PhysicsState
    noise_key: int
    step: int
    ended: bool
    last: StepResult
    object_state: Mapping[str, Any]
    form: Form


@dataclass(frozen=True)
class SceneState:
    """State of some envs, made by `Env.get_state`; row k of `envs` was taken from env `env_ids[k]`.

    `step_count` is the number of steps that the Env had made.
    """

    env_ids: tuple[int, ...]
    envs: tuple[EnvState, ...]
    step_count: int
    version: int = VERSION

    def __len__(self) -> int:
        return len(self.envs)
