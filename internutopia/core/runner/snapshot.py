"""Saving envs and restoring them, so that they go on to the bit as they did.

A `SceneState` holds, for each env that it was taken from:

- physics: everything that the engine integrates (positions, velocities, activations, controls, forces applied, mocap
  poses, warm start of the solver, time) and what was changed in this env's model (gains, masses, friction, ...);
- what was measured last: efforts, contact forces, what sensors read of physics;
- the episode: number of steps, whether it ended, its last result, what noise depends on;
- the state of the Python objects (see `object_state`): task, metrics, reward, robots, controllers, sensors.

The step counter of the Env, which says when frames are due, follows if the state is put into all envs that hold an
episode. Not in it: the queue of episodes, results that were written, and pictures that were taken.

A state is plain data that can be pickled, also into another process; it fits every env that runs the same task config
on the same models.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from internutopia.core.config import TaskCfg
from internutopia.core.runner.object_state import load_parts, parts_of, save_parts
from internutopia.core.world.base import SavedPhysics

if TYPE_CHECKING:
    from internutopia.core.runner.base import StepResult
    from internutopia.core.runner.simulator import RunningEpisode, SimulatorRunner

VERSION = 1


@dataclass(frozen=True)
class EnvState:
    """The state of one env. `task` is its task config as JSON by field, `step_dt` the length of its steps [s]."""

    task: Mapping[str, str]
    step_dt: float
    physics: SavedPhysics
    noise_key: int
    step: int
    ended: bool
    last: StepResult
    parts: Mapping[str, Any]


@dataclass(frozen=True)
class SceneState:
    """The state of some envs, made by `Env.get_state`; row k of `envs` was taken from env `env_ids[k]`.

    `step_count` is the number of steps that the Env had made.
    """

    env_ids: tuple[int, ...]
    envs: tuple[EnvState, ...]
    step_count: int
    version: int = VERSION

    def __len__(self) -> int:
        return len(self.envs)


def get_state(runner: SimulatorRunner, env_ids: Sequence[int]) -> SceneState:
    """The state of these envs, which shares nothing with them. ValueError for an env without an episode."""
    tasks: dict[int, dict[str, str]] = {}  # by task index: many envs run the same one
    states: list[EnvState] = []
    for env_id in env_ids:
        env = _running(runner, env_id, 'get_state')
        index = env.episode.task_index
        if index not in tasks:
            tasks[index] = _as_json(env.episode.snapshot())
        states.append(
            EnvState(
                task=tasks[index],
                step_dt=runner.world.step_dt,
                physics=runner.world.save(env_id),
                noise_key=int(runner.world.noise_keys[env_id]),
                step=env.step,
                ended=env.ended,
                last=copy.deepcopy(env.last),
                parts=save_parts(parts_of(env.task), env_id),
            )
        )
    return SceneState(tuple(env_ids), tuple(states), runner.get_current_time_step_index())


def set_state(runner: SimulatorRunner, state: SceneState, env_ids: Sequence[int] | None = None) -> None:
    """Put envs (None: those it was taken from) into a state. ValueError if it does not fit: nothing has changed."""
    rows = check_fit(runner, state, env_ids)
    if rows.keys() >= runner.env_id_to_task_name_map.keys():
        runner.set_current_time_step_index(state.step_count)
    for env_id, saved in rows.items():
        env = _running(runner, env_id, 'set_state')
        runner.world.restore(env_id, saved.physics)
        runner.world.noise_keys[env_id] = saved.noise_key
        env.step, env.ended, env.last = saved.step, saved.ended, copy.deepcopy(saved.last)
        load_parts(parts_of(env.task), saved.parts, env_id)
        for robot in env.task.robots.values():
            if robot.fleet is not None:
                robot.fleet.forget(env_id)


def rows_of(state: SceneState, env_num: int, env_ids: Sequence[int] | None = None) -> dict[int, EnvState]:
    """What each env gets. ValueError if it is no state, or not one for so many envs."""
    if not isinstance(state, SceneState):
        raise ValueError(f'set_state takes what get_state returned, got {type(state).__name__}')
    if state.version != VERSION:
        raise ValueError(f'set_state: the state has version {state.version}, this is version {VERSION}')
    ids = state.env_ids if env_ids is None else env_ids
    if len(ids) != len(state):
        raise ValueError(f'set_state: the state is that of {len(state)} envs, but env_ids names {len(ids)}')
    for env_id in ids:
        if not 0 <= env_id < env_num:
            raise ValueError(
                f'set_state: the state was taken from env {env_id}, here are {env_num} envs; name others with '
                'env_ids=[...]'
            )
    return dict(zip(ids, state.envs, strict=True))


def check_fit(runner: SimulatorRunner, state: SceneState, env_ids: Sequence[int] | None) -> dict[int, EnvState]:
    """What each env gets. ValueError saying what does not fit."""
    rows = rows_of(state, runner.env_num, env_ids)
    tasks: dict[int, dict[str, str]] = {}
    for env_id, saved in rows.items():
        env = _running(runner, env_id, 'set_state')
        index = env.episode.task_index
        if index not in tasks:
            tasks[index] = _as_json(env.episode.snapshot())
        _check_fits(runner, env_id, saved, tasks[index], env)
    return rows


def _check_fits(
    runner: SimulatorRunner, env_id: int, saved: EnvState, task: Mapping[str, str], env: RunningEpisode
) -> None:
    where = f'set_state: env {env_id}'
    different = [name for name in {**task, **saved.task} if task.get(name) != saved.task.get(name)]
    if different:
        raise ValueError(
            f'{where} runs another task than the one that the state was taken from; they differ in '
            f'{", ".join(different)}'
        )
    if runner.world.step_dt != saved.step_dt:
        raise ValueError(
            f'{where} makes steps of {runner.world.step_dt:g} s, the state is that of an env with steps of '
            f'{saved.step_dt:g} s'
        )
    problem = runner.world.check_compatible(env_id, saved.physics)
    if problem is not None:
        raise ValueError(f'{where}: {problem}')
    if parts_of(env.task).keys() != saved.parts.keys():
        names = ', '.join(sorted(parts_of(env.task).keys() ^ saved.parts.keys()))
        raise ValueError(f'{where} has other parts than the env that the state was taken from: {names}')


def _running(runner: SimulatorRunner, env_id: int, call: str) -> RunningEpisode:
    env = runner.envs[env_id]
    if env is None:
        raise ValueError(f'{call}: env {env_id} holds no episode; reset it first')
    return env


def _as_json(config: TaskCfg) -> dict[str, str]:
    """A task config, field by field; values that JSON cannot hold are told apart by their class alone."""

    def fallback(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray | np.generic) else type(value).__qualname__

    dump = config.model_dump(mode='json', fallback=fallback)
    return {name: json.dumps(value, sort_keys=True) for name, value in dump.items()}
