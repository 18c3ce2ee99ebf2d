"""Env snapshots: save and restore the state of envs."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from internutopia.config import TaskCfg
from internutopia.core.observations import StepResult
from internutopia.core.runner.env_group import EnvSlot
from internutopia.core.runner.simulator import SimulatorRunner
from internutopia.core.runner.state import (
    VERSION,
    EnvState,
    Form,
    SceneState,
    check_object_state,
    difference,
    form_of,
    get_object_state,
    is_form,
    objects_of,
    set_object_state,
)
from internutopia.engines.base import PhysicsState
from internutopia.util.errors import EnvValueError

# fields of an `EnvState`, and what they are
_FIELDS: dict[str, Callable[[Any], bool]] = {
    'task': lambda task: _has_names(task) and all(isinstance(value, str) for value in task.values()),
    'step_dt': lambda step_dt: type(step_dt) is float,
    'physics': lambda physics: (
        isinstance(physics, PhysicsState) and isinstance(physics.model, bytes) and _has_names(physics.arrays)
    ),
    'noise_key': lambda key: type(key) is int,
    'step': lambda step: type(step) is int,
    'ended': lambda ended: type(ended) is bool,
    'last': lambda last: isinstance(last, StepResult),
    'object_state': lambda states: _has_names(states),
    'form': is_form,
}
_MOST_STEPS = 2**63 - 1


def get_state(runner: SimulatorRunner, env_ids: Sequence[int], checked: bool = True) -> SceneState:
    """Return the state of these envs, which shares nothing with them. ValueError for an env without an episode.

    With `checked` it can be passed to `set_state`; `restore` does not need the form in it.
    """
    tasks: dict[int, dict[str, str]] = {}  # by task index: many envs run the same one
    forms: dict[int, Form] = {}
    states: list[EnvState] = []
    for env_id in env_ids:
        env = _running(runner, env_id, 'get_state')
        index = env.episode.task_index
        if index not in tasks:
            tasks[index] = _as_json(env.episode.snapshot())
        fields: dict[str, Any] = {
            'task': tasks[index],
            'step_dt': runner.world.step_dt,
            'physics': runner.world.get_state(env_id),
            'noise_key': int(runner.world.noise_keys[env_id]),
            'step': env.step,
            'ended': env.ended,
            'last': copy.deepcopy(env.last),
            'object_state': get_object_state(objects_of(env.task), env_id),
        }
        form = _form(**fields) if checked else ''
        if form != forms.get(index):  # that of many envs is the same
            forms[index] = form
        states.append(EnvState(**fields, form=forms[index]))
    return SceneState(tuple(env_ids), tuple(states), runner.get_current_time_step_index())


def _form(last: StepResult, object_state: Mapping[str, Any], **_: Any) -> Form:
    """Return the form of the parts that no engine checks."""
    return EnvState.__name__, {'.last': form_of(last), '.object_state': form_of(object_state)}


def set_state(runner: SimulatorRunner, state: SceneState, env_ids: Sequence[int] | None = None) -> SceneState:
    """Put envs (None: those it was taken from) into a state; returns their previous state.

    ValueError if it does not fit. If that, or anything else goes wrong, nothing has changed.
    """
    rows = check_fit(runner, state, env_ids)
    before = get_state(runner, list(rows), checked=False)
    try:
        for env_id, saved in rows.items():
            env = _write(runner, env_id, saved)
            try:
                set_object_state(objects_of(env.task), saved.object_state, env_id)
            except ValueError as error:
                raise EnvValueError(env_id, f'set_state: env {env_id}: {error}') from error
            runner.batches.forget(env_id)
    except BaseException as error:
        for problem in restore(runner, before):
            error.add_note(problem)
        raise
    if rows.keys() >= runner.env_id_to_task_name_map.keys():
        runner.set_current_time_step_index(state.step_count)
    return before


def restore(runner: SimulatorRunner, before: SceneState) -> list[str]:
    """Put envs back into their previous state; returns messages about classes that could not load theirs."""
    problems: list[str] = []
    for env_id, saved in zip(before.env_ids, before.envs, strict=True):
        env = _write(runner, env_id, saved)
        for name, each in objects_of(env.task).items():
            try:
                set_object_state({name: each}, saved.object_state, env_id)
            except Exception as error:
                problems.append(f'env {env_id}, {name}: could not be restored ({type(error).__name__}: {error})')
        runner.batches.forget(env_id)
    runner.set_current_time_step_index(before.step_count)
    return problems


def rows_of(state: SceneState, env_num: int, env_ids: Sequence[int] | None = None) -> dict[int, EnvState]:
    """Return the state for each env. ValueError if it is not a state, or not one for so many envs."""
    if not isinstance(state, SceneState):
        raise ValueError(f'set_state takes what get_state returned, got {type(state).__name__}')
    if type(state.version) is not int or state.version != VERSION:
        raise ValueError(f'set_state: the state has version {state.version!r}, this is version {VERSION}')
    ids = state.env_ids if env_ids is None else env_ids
    if not isinstance(state.envs, tuple):
        raise ValueError(f'set_state: envs of the state is {type(state.envs).__name__}, not tuple')
    for row, env in enumerate(state.envs):
        if not isinstance(env, EnvState):
            raise ValueError(f'set_state: envs[{row}] of the state is {type(env).__name__}, not EnvState')
    if not isinstance(state.env_ids, tuple):
        raise ValueError(f'set_state: env_ids of the state is {type(state.env_ids).__name__}, not tuple')
    for env_id in ids:
        if type(env_id) is not int or not 0 <= env_id < env_num:
            raise ValueError(
                f'set_state: the state was taken from env {env_id}, here are {env_num} envs; name others with '
                'env_ids=[...]'
            )
    if len(set(ids)) < len(ids):
        raise ValueError(f'set_state: the state names an env twice: {list(ids)}')
    if type(state.step_count) is not int or not 0 <= state.step_count <= _MOST_STEPS:
        raise ValueError(f'set_state: step_count={state.step_count!r} of the state is not a number of steps')
    if len(ids) != len(state):
        raise ValueError(f'set_state: the state is that of {len(state)} envs, but env_ids names {len(ids)}')
    return dict(zip(ids, state.envs, strict=True))


def check_fit(runner: SimulatorRunner, state: SceneState, env_ids: Sequence[int] | None) -> dict[int, EnvState]:
    """Return the state for each env. ValueError with what does not fit."""
    rows = rows_of(state, runner.env_num, env_ids)
    tasks: dict[int, dict[str, str]] = {}
    for env_id, saved in rows.items():
        env = _running(runner, env_id, 'set_state')
        index = env.episode.task_index
        if index not in tasks:
            tasks[index] = _as_json(env.episode.snapshot())
        _check_fits(runner, env_id, saved, tasks[index], env)
    return rows


def _write(runner: SimulatorRunner, env_id: int, saved: EnvState) -> EnvSlot:
    """Put an env, without its objects, into a state that fits."""
    env = _running(runner, env_id, 'set_state')
    runner.world.set_state(env_id, saved.physics)
    runner.world.noise_keys[env_id] = saved.noise_key
    runner.steps[env_id], runner.running[env_id] = saved.step, not saved.ended
    env.last = copy.deepcopy(saved.last)
    return env


def _check_fits(runner: SimulatorRunner, env_id: int, saved: EnvState, task: Mapping[str, str], env: EnvSlot) -> None:
    where = f'set_state: env {env_id}'
    if wrong := [name for name, fits in _FIELDS.items() if not fits(getattr(saved, name))]:
        raise EnvValueError(env_id, f'{where}: the state was not returned by get_state; see {", ".join(wrong)}')
    if not 0 <= saved.step <= _MOST_STEPS or not 0 <= saved.noise_key < 2**64:
        raise EnvValueError(env_id, f'{where}: step={saved.step}, noise_key={saved.noise_key} is none of an episode')
    different = [name for name in {**task, **saved.task} if task.get(name) != saved.task.get(name)]
    if different:
        raise EnvValueError(
            env_id,
            f'{where} runs another task than the one that the state was taken from; they differ in '
            f'{", ".join(different)}',
        )
    if runner.world.step_dt != saved.step_dt:
        raise EnvValueError(
            env_id,
            f'{where} has steps of {runner.world.step_dt:g} s, the state is that of an env with steps of '
            f'{saved.step_dt:g} s',
        )
    problem = runner.world.check_compatible(env_id, saved.physics)
    if problem is not None:
        raise EnvValueError(env_id, f'{where}: {problem}')
    lost = [name for name, array in saved.physics.arrays.items() if not (saved.ended or np.isfinite(array).all())]
    if lost:
        raise EnvValueError(env_id, f'{where}: the state is not finite, in {", ".join(lost)}')
    try:
        check_object_state(objects_of(env.task), saved.object_state, env_id)
    except ValueError as error:
        raise EnvValueError(env_id, f'{where}: {error}') from error
    if changed := difference(_form(saved.last, saved.object_state), saved.form):
        raise EnvValueError(env_id, f'{where}: the state was changed: {changed}')


def _has_names(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _running(runner: SimulatorRunner, env_id: int, call: str) -> EnvSlot:
    env = runner.envs[env_id]
    if env is None:
        raise EnvValueError(env_id, f'{call}: env {env_id} has no episode; reset it first')
    return env


def _as_json(config: TaskCfg) -> dict[str, str]:
    """Return a task config as JSON by field; values that JSON cannot hold are represented by their class."""

    def fallback(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray | np.generic) else type(value).__qualname__

    dump = config.model_dump(mode='json', fallback=fallback)
    return {name: json.dumps(value, sort_keys=True) for name, value in dump.items()}
