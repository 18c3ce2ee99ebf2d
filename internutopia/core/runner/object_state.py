"""The state of the Python objects of an env: task, metrics, reward, robots, controllers, sensors.

An object of one env: its attributes that are plain data (numbers, text, None, numpy arrays, random generators,
dataclasses, and lists, tuples, sets and dicts of those). Other attributes stay as they are, and so do those that belong
to the place: name, env id, offset, prim paths. A batched controller: the arrays that it made with `state()`.

A class that keeps more than that defines both of these; for a batched one, `env_ids` is the env that is meant::

    def save_state(self, env_ids=...): ...         # returns something that can be pickled and shares nothing with it
    def load_state(self, state, env_ids=...): ...
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

# of the place where an episode runs, not of its state
_OF_THE_PLACE = {'name', 'env_id', 'env_offset', 'root_path', 'task_name'}
_PRIM_PATH = '/World/env_'
_ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic)
_GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)

Part = tuple[Any, bool]  # an object, and whether it serves all envs


def parts_of(task: BaseTask) -> dict[str, Part]:
    """The objects of a task's env that may have state, by what they are called in error messages."""
    parts: dict[str, Part] = {'task': (task, False)}
    parts.update({f'metric {name!r}': (metric, False) for name, metric in task.metrics.items()})
    if task.reward is not None:
        parts['reward'] = task.reward, False
    for name, robot in task.robots.items():
        objects = [(robot, False)] if robot.fleet is None else [(robot, False), (robot.fleet.robot, True)]
        for owner, shared in objects:
            where = f'robot {name!r}' + (' (all envs)' if shared else '')
            parts[where] = owner, shared
            for kind, members in (('controller', owner.controllers), ('sensor', owner.sensors)):
                for member_name, member in members.items():
                    for label, part in _tree(f'{where}, {kind} {member_name!r}', member):
                        parts[label] = part, shared
    return parts


def save_parts(parts: Mapping[str, Part], env_id: int) -> dict[str, Any]:
    """The state of each part in an env."""
    return {name: _save(part, [env_id] if shared else ...) for name, (part, shared) in parts.items()}


def load_parts(parts: Mapping[str, Part], states: Mapping[str, Any], env_id: int) -> None:
    """Give each part in an env the state it had."""
    for name, (part, shared) in parts.items():
        _load(part, states[name], [env_id] if shared else ...)


def _tree(label: str, part: Any) -> Iterator[tuple[str, Any]]:
    """A part and everything under it."""
    yield label, part
    for index, sub_controller in enumerate(part.sub_controllers if isinstance(part, BaseController) else ()):
        yield from _tree(f'{label}[{index}]', sub_controller)


def _save(part: Any, env_ids: Any) -> Any:
    if hasattr(part, 'save_state'):
        return part.save_state(env_ids)
    if env_ids is not ...:
        return [array[env_ids] for array in _kept_by_env(part)]
    return {
        name: copy.deepcopy(value)
        for name, value in vars(part).items()
        if name not in _OF_THE_PLACE and _is_data(value)
    }


def _load(part: Any, state: Any, env_ids: Any) -> None:
    if hasattr(part, 'load_state'):
        part.load_state(state, env_ids)
    elif env_ids is not ...:
        for array, rows in zip(_kept_by_env(part), state, strict=True):
            array[env_ids] = rows
    else:
        for name, value in state.items():
            setattr(part, name, _written(getattr(part, name, None), value))


def _kept_by_env(part: Any) -> list[np.ndarray]:
    """The arrays of a batched controller that have a row for each env."""
    return [array for array, _ in part._states] if isinstance(part, BaseController) else []


def _is_data(value: Any) -> bool:
    """Whether a value is plain data through and through."""
    if isinstance(value, str):
        return not value.startswith(_PRIM_PATH)
    if isinstance(value, _ATOMS) or isinstance(value, _GENERATORS):
        return True
    if isinstance(value, np.ndarray):
        return value.flags.writeable and not value.dtype.hasobject
    if isinstance(value, Mapping):
        return all(_is_data(key) and _is_data(item) for key, item in value.items())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return all(_is_data(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return all(_is_data(getattr(value, field.name)) for field in dataclasses.fields(value))
    return False


def _written(current: Any, saved: Any) -> Any:
    """The saved value, in the same array, list, dict or generator as now where there is one: others may hold it too."""
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
