"""Object state of an env: that of its Python objects, task, metrics, reward, robots, controllers, sensors.

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
import random
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from internutopia.core.robot.controller import BaseController
from internutopia.core.task.task import BaseTask
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
                raise ValueError(f'{name!r} is no attribute that is saved')
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
