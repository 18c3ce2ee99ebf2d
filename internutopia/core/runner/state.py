"""State of envs, from which they continue bit for bit: of physics, of objects, and the form that it is taken again in.

A `SceneState` holds, for each env that it was taken from:

- physics: everything that the engine integrates (positions, velocities, activations, controls, forces applied, mocap
  poses, warm start of the solver, time) and what was changed in this env's model (gains, masses, friction, ...);
- the last measurements: efforts, contact forces, readings of physics by sensors;
- the episode: number of steps, whether it ended, its last result, the key of its noise;
- the state of the Python objects (see below): task, metrics, reward, robots, controllers, sensors;
- the form of all that (`form_of`), in which alone it is taken again.

The step counter of the Env, which says when frames are due, follows if the state is put into all envs that hold an
episode. Not in it: the queue of episodes, results that were written, and pictures that were taken.

A state is plain data that can be pickled, also into another process; it fits every env that runs the same task config
on the same models.

A list that a class keeps stays a list of as many things, a number that was finite stays finite; which numbers and texts
there are may change. So an env is never put into a state that its classes cannot continue from.

The form of a mapping, sequence or dataclass is the name of its type and the forms of what is in it, by where it is
(`['name']`, `[0]`, `.name`); that of anything else is text.

An object of one env: its attributes that are plain data (numbers, text, None, numpy arrays, random generators,
dataclasses, and lists, tuples, sets and dicts of those). Other attributes stay as they are, and so do those that belong
to the place: name, env id, offset, prim paths. A batched controller: the arrays that it made with `state()`.

A class that keeps more defines the first two of these; for a batched one, `env_ids` is the env that is meant::

    def save_state(self, env_ids=...): ...         # returns something that can be pickled and shares nothing with it
    def load_state(self, state, env_ids=...): ...
    def check_state(self, state, env_ids=...): ... # may be left out; ValueError if it cannot be loaded, changes nothing
"""

from __future__ import annotations

import copy
import dataclasses
import math
import random
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from internutopia.core.observations import StepResult
from internutopia.core.robot.controller import BaseController
from internutopia.core.task.task import BaseTask
from internutopia.engines.base import PhysicsState
from internutopia.model.spec import Probe
from internutopia.util.arrays import check_alike

# of the place where an episode runs, not of its state
_OF_THE_PLACE = {'name', 'env_id', 'env_offset', 'root_path', 'task_name'}
_PRIM_PATH = '/World/env_'
_ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic)
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
_LOAD_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # of state that is not as expected

Shared = tuple[Any, bool]  # an object, and whether it serves all envs


def objects_of(task: BaseTask) -> dict[str, Shared]:
    """Return the objects of a task's env that may have state, by their names in error messages."""
    found: dict[str, Shared] = {'task': (task, False)}
    found.update({f'metric {name!r}': (metric, False) for name, metric in task.metrics.items()})
    if task.reward is not None:
        found['reward'] = task.reward, False
    for name, robot in task.robots.items():
        owners = [(robot, False)] if robot.batch is None else [(robot, False), (robot.batch.robot, True)]
        for owner, shared in owners:
            where = f'robot {name!r}' + (' (all envs)' if shared else '')
            found[where] = owner, shared
            for kind, members in (('controller', owner.own_controllers), ('sensor', owner.sensors)):
                for member_name, member in members.items():
                    for label, each in _tree(f'{where}, {kind} {member_name!r}', member):
                        found[label] = each, shared
    return found


def get_object_state(objects: Mapping[str, Shared], env_id: int) -> dict[str, Any]:
    """Return the state of each object in an env."""
    return {name: _save(each, [env_id] if shared else ...) for name, (each, shared) in objects.items()}


def set_object_state(objects: Mapping[str, Shared], states: Mapping[str, Any], env_id: int) -> None:
    """Restore the state of each object in an env. ValueError if a class cannot load it."""
    for name, (each, shared) in objects.items():
        try:
            _load(each, states[name], [env_id] if shared else ...)
        except _LOAD_ERRORS as error:
            raise ValueError(f'{name}: its state cannot be loaded ({type(error).__name__}: {error})') from error


def check_object_state(objects: Mapping[str, Shared], states: Any, env_id: int) -> None:
    """Raise a ValueError if these states do not fit the objects in an env."""
    if not isinstance(states, Mapping) or states.keys() != objects.keys():
        names = ', '.join(sorted(objects.keys() ^ set(states if isinstance(states, Mapping) else ())))
        raise ValueError(f'has other objects than the env that the state was taken from: {names}')
    for name, (each, shared) in objects.items():
        try:
            _check(each, states[name], [env_id] if shared else ...)
        except ValueError as error:
            raise ValueError(f'{name}: {error}') from error
        except Exception as error:
            raise ValueError(f'{name}: its state cannot be checked ({type(error).__name__}: {error})') from error


def _tree(label: str, each: Any) -> Iterator[tuple[str, Any]]:
    """Yield an object and everything under it."""
    yield label, each
    for index, sub_controller in enumerate(each.sub_controllers if isinstance(each, BaseController) else ()):
        yield from _tree(f'{label}[{index}]', sub_controller)


def _save(each: Any, env_ids: Any) -> Any:
    if hasattr(each, 'save_state'):
        return each.save_state(env_ids)
    if env_ids is not ...:
        return [array[env_ids] for array in _kept_by_env(each)]
    return {
        name: copy.deepcopy(value)
        for name, value in vars(each).items()
        if name not in _OF_THE_PLACE and _is_data(value)
    }


def _check(each: Any, state: Any, env_ids: Any) -> None:
    """Raise a ValueError if a state does not fit an object."""
    if hasattr(each, 'load_state'):
        if hasattr(each, 'check_state'):
            each.check_state(state, env_ids)
    elif env_ids is not ...:
        check_alike(state, [array[env_ids] for array in _kept_by_env(each)])
    else:
        if not isinstance(state, dict):
            raise ValueError(f'expected its attributes by name, got {type(state).__name__}')
        for name, value in state.items():
            if not isinstance(name, str) or name in _OF_THE_PLACE or not _is_data(value, constants=True):
                raise ValueError(f'{name!r} is not a saved attribute')
        if '_states' in state:
            check_alike([array for array, _ in state['_states']], _kept_by_env(each))


def _load(each: Any, state: Any, env_ids: Any) -> None:
    if hasattr(each, 'load_state'):
        each.load_state(state, env_ids)
    elif env_ids is not ...:
        for array, rows in zip(_kept_by_env(each), state, strict=True):
            array[env_ids] = rows
    else:
        for name, value in state.items():
            setattr(each, name, _written(getattr(each, name, None), value))


def _kept_by_env(each: Any) -> list[np.ndarray]:
    """Return the arrays of a batched controller that have a row for each env."""
    return [array for array, _ in each._states] if isinstance(each, BaseController) else []


def _is_data(value: Any, constants: bool = False) -> bool:
    """Return True if a value is plain data throughout; with `constants` read-only arrays count as data."""
    if isinstance(value, str):
        return not value.startswith(_PRIM_PATH)
    if isinstance(value, _ATOMS) or isinstance(value, _GENERATORS):
        return True
    if isinstance(value, np.ndarray):
        return (constants or value.flags.writeable) and not value.dtype.hasobject
    if isinstance(value, Mapping):
        return all(_is_data(key, constants) and _is_data(item, constants) for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return all(_is_data(item, constants) for item in value)
    if isinstance(value, Probe):  # what the model was made with
        return False
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return all(_is_data(getattr(value, field.name), constants) for field in dataclasses.fields(value))
    return False


def _written(current: Any, saved: Any) -> Any:
    """Return the saved value, written into the current array, list, dict or generator, to which others may refer."""
    if type(current) is not type(saved):
        return copy.deepcopy(saved)
    if isinstance(saved, np.ndarray) and (current.shape, current.dtype) == (saved.shape, saved.dtype):
        current[...] = saved
        return current
    if isinstance(saved, np.random.Generator) and type(current.bit_generator) is type(saved.bit_generator):
        current.bit_generator.state = saved.bit_generator.state
        return current
    if isinstance(saved, dict):
        values = {key: _written(current.get(key), value) for key, value in saved.items()}
        current.clear()
        current.update(values)
        return current
    if isinstance(saved, list | tuple) and type(saved) in (list, tuple) and len(current) == len(saved):
        values = [_written(*pair) for pair in zip(current, saved, strict=True)]
        if isinstance(saved, tuple):
            return tuple(values)
        current[:] = values
        return current
    return copy.deepcopy(saved)


Form = str | tuple[str, Mapping[str, Any]]

_LEAST, _MOST = -(2**63), 2**64 - 1  # that fit into an integer of numpy
_SIMPLE = {str, bool, type(None), bytes}
_ARRAYS = np.ndarray, np.generic
_SEQUENCES = list, tuple, deque


def form_of(value: Any) -> Form:
    """Return the form of a value."""
    kind = type(value)
    name = kind.__name__
    if kind in _SIMPLE:
        return name
    if kind is float:
        return name if math.isfinite(value) else f'{name}, not finite'
    if kind is int:
        return name if _LEAST <= value <= _MOST else f'{name} beyond 64 bits'
    if isinstance(value, _ARRAYS):
        finite = value.dtype.kind not in 'fc' or np.isfinite(value).all()
        return _name_of_arrays(name, value.dtype, value.shape, bool(finite))
    if kind is dict or isinstance(value, Mapping):
        return name, {f'[{key!r}]': form_of(item) for key, item in value.items()}
    if isinstance(value, _SEQUENCES):
        fields = getattr(value, '_fields', None)  # of a named tuple
        places = (f'[{index}]' for index in range(len(value))) if fields is None else (f'.{field}' for field in fields)
        return name, {place: form_of(item) for place, item in zip(places, value, strict=True)}
    if isinstance(value, (set, frozenset)):
        return f'{name} of {sorted({str(form_of(item)) for item in value})}'
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return name, {f'.{field.name}': form_of(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return name


@cache
def _name_of_arrays(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], finite: bool) -> str:
    return f'{name} of {dtype} {shape}' + ('' if finite else ', not finite')


def is_form(value: Any) -> bool:
    """Return True if a value is a form."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Mapping):
        return isinstance(value[0], str) and all(map(is_form, value[1].values()))
    return isinstance(value, str)


def difference(form: Form, expected: Form, place: str = '') -> str | None:
    """Return the first place where a form differs from the expected one, with both; None if there is none."""
    if form == expected:
        return None
    if isinstance(form, str) or isinstance(expected, str) or form[0] != expected[0]:
        return f'{place} is {_name(form)}, and was {_name(expected)} when the state was taken'
    parts, known = form[1], expected[1]
    for where in {**known, **parts}:
        if where not in parts:
            return f'{place}{where} is missing'
        if where not in known:
            return f'{place}{where} was not there when the state was taken'
        if found := difference(parts[where], known[where], f'{place}{where}'):
            return found
    return None


def _name(form: Form) -> str:
    return form if isinstance(form, str) else form[0]


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
