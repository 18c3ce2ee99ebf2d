"""Run files: the YAML form of a `Config`, plus the actions of the robots.

Beside the fields of `Config` a run file may have

- `actions` at the top: `{robot: {controller: SPEC}}`, the actions of the robots in every task, as below;
- `actions` in a task: the same for this task; a robot named here has none of the actions at the top;
- `repeat: N` in a task: the task is run N times. The list of tasks is iterated again and again, each time leaving
  out the tasks that have had their share, so that neighbouring envs run different tasks.

A SPEC is

- a list: this action at every step; `{constant: [...]}` is the same;
- `{path: [[x, y, z], ...]}`: follow these points [m], env frame; for a controller that takes a path;
- `zero`: zeros in the shape of the controller's action space;
- `random`: sampled from the action space at each step; `{random: {every: 20}}` holds each sample for 20 steps.

Random actions depend on the seed of the run and the number of the episode, not on the env that runs it.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from internutopia.config import Config, TaskCfg
from internutopia.config.yaml_file import expanded, read_mapping
from internutopia.core.robot.robot import BaseRobot
from internutopia.util import did_you_mean, log, near_name
from internutopia.util.bounds import MAX_EPISODES

_FORMS = ('constant', 'path', 'random', 'zero')


@dataclass(frozen=True)
class Constant:
    """The same action at every step."""

    action: Any


@dataclass(frozen=True)
class Zero:
    """Zeros in the shape of the action space."""


@dataclass(frozen=True)
class Random:
    """Samples from the action space, each held for `every` steps."""

    every: int = 1


Spec = Constant | Zero | Random
TaskActions = Mapping[str, Mapping[str, Spec]]


def parse_actions(task: TaskCfg, defaults: Any, own: Any, task_index: int) -> TaskActions:
    """Parse and check the actions of the robots of a task.

    Args:
        task: the task.
        defaults: `{robot: {controller: SPEC}}` for all tasks, or None.
        own: the same for this task, or None; wins robot by robot.
        task_index: index of the task, for messages.

    Raises:
        ValueError: an unknown robot or controller, or a malformed SPEC, naming task, robot and controller.
    """
    own_place = f'task_configs[{task_index}].actions'
    places = {
        **dict.fromkeys(_mapping(defaults, 'actions'), 'actions'),
        **dict.fromkeys(_mapping(own, own_place), own_place),
    }
    merged = {**_mapping(defaults, 'actions'), **_mapping(own, own_place)}
    robots = {robot.name: robot for robot in task.robots}
    parsed: dict[str, dict[str, Spec]] = {}
    for name, controllers in merged.items():
        place = f'{places[name]}, robot {name!r}'
        if name not in robots:
            raise ValueError(f'{place}: task_configs[{task_index}] has no such robot; {did_you_mean(name, robots)}')
        robot_class = BaseRobot.robots.get(robots[name].type, BaseRobot)
        takes_anything = robot_class.apply_action is not BaseRobot.apply_action
        known = {controller.name for controller in robots[name].controllers or []}
        parsed[name] = {}
        for controller, spec in _mapping(controllers, place).items():
            if controller not in known and not takes_anything:
                raise ValueError(
                    f'{place}: in task_configs[{task_index}] it has no controller {controller!r}; '
                    f'{did_you_mean(controller, known)}'
                )
            parsed[name][controller] = _parse_spec(spec, f'{place}, controller {controller!r}')
    return parsed


SpaceOf = Callable[[str, str], 'gymnasium.Space[Any] | None']


class EpisodeActions:
    """Actions of one episode, one step after the other.

    Args:
        specs: actions of the robots.
        space_of: the action space of a robot's controller, None if there is none.
        seed: entropy for random actions.

    Raises:
        ValueError: `zero` or `random` for a controller without an action space.
    """

    def __init__(self, specs: TaskActions, space_of: SpaceOf, seed: tuple[int, ...]):
        self._action: dict[str, dict[str, Any]] = {}
        self._random: list[tuple[dict[str, Any], str, gymnasium.spaces.Box, int]] = []
        self._step = 0
        for name, controllers in specs.items():
            self._action[name] = action = {}
            for controller, spec in controllers.items():
                if isinstance(spec, Constant):
                    action[controller] = spec.action
                    continue
                space = _box(space_of(name, controller), name, controller)
                if isinstance(spec, Zero):
                    action[controller] = np.zeros(space.shape, space.dtype)
                else:
                    space.seed(int(np.random.SeedSequence((*seed, len(self._random))).generate_state(1)[0]))
                    self._random.append((action, controller, space, spec.every))

    def next(self) -> Mapping[str, Any]:
        """Return the action for the next step; valid until the one after."""
        for action, controller, space, every in self._random:
            if self._step % every == 0:
                action[controller] = space.sample()
        self._step += 1
        return self._action


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f'{place}: expected a mapping {{robot: {{controller: action}}}}, got {value!r}')
    return value


def _parse_spec(spec: Any, place: str) -> Spec:
    if isinstance(spec, str):
        spec = {spec: True}
    if isinstance(spec, list):
        return Constant(spec)
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise ValueError(
            f"{place}: expected a list, 'zero', 'random', {{path: ...}} or {{constant: ...}}, got {spec!r}"
        )
    form, value = next(iter(spec.items()))
    if form == 'constant' and isinstance(value, list):
        return Constant(value)
    if form == 'path' and _is_path(value):
        return Constant([value])
    if form == 'zero' and value is True:
        return Zero()
    if form == 'random' and value is True:
        return Random()
    if form == 'random' and isinstance(value, Mapping) and list(value) == ['every']:
        if type(value['every']) is int and value['every'] >= 1:
            return Random(value['every'])
    if form not in _FORMS:
        raise ValueError(f'{place}: an action cannot be given as {form!r}; {did_you_mean(form, _FORMS)}')
    raise ValueError(
        f'{place}: expected constant: [...], path: [[x, y, z], ...], zero, random or random: {{every: N}}, '
        f'got {form}: {value!r}'
    )


def _is_path(value: Any) -> bool:
    try:
        points = np.asarray(value, float)
    except (TypeError, ValueError):
        return False
    return points.ndim == 2 and points.shape[1] == 3 and len(points) > 0 and bool(np.isfinite(points).all())


def _box(space: gymnasium.Space[Any] | None, robot_name: str, controller_name: str) -> gymnasium.spaces.Box:
    """Return a copy of the controller's space, with a random generator of its own."""
    if not isinstance(space, gymnasium.spaces.Box):
        raise ValueError(
            f'robot {robot_name!r}, controller {controller_name!r}: zero and random actions need a controller whose '
            f'action_space() is a Box, this one has {space}; write the action as a list'
        )
    return copy.deepcopy(space)


_OF_TASKS = 'actions', 'repeat'


@dataclass(frozen=True)
class RunFile:
    """Config and actions of a run: `actions[i]` is for `config.task_configs[i]`."""

    config: Config
    actions: list[TaskActions]


def read_run_file(path: str | os.PathLike[str], **overrides: Any) -> RunFile:
    """Read and check a run file; `overrides` are `Config` fields that replace those in the file.

    Call it when the extensions are loaded: what a robot accepts depends on its class.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is no YAML, or a value is wrong; the message names the place.
        pydantic.ValidationError: a field of the config is wrong.
    """
    values = expanded(read_mapping(path))
    fields = {*Config.model_fields, 'actions'}
    for name in values.keys() - fields:
        raise ValueError(f'a run file has no field {name!r}; {did_you_mean(name, fields)}')
    defaults = values.pop('actions', None)
    entries = values.get('task_configs')
    repeats: list[int] = []
    if isinstance(entries, list):
        repeats = [_repeat(entry, index) for index, entry in enumerate(entries)]
        if sum(repeats) > MAX_EPISODES:
            raise ValueError(f'task_configs: {sum(repeats)} episodes, with their `repeat`; there may be {MAX_EPISODES}')
        for index, entry in enumerate(entries):
            _warn_of_near_names(entry, index)
        values['task_configs'] = [  # copies: YAML anchors make entries share mappings
            {name: value for name, value in entry.items() if name != 'repeat'} if isinstance(entry, Mapping) else entry
            for entry in entries
        ]
    config = Config.model_validate({**values, **overrides})
    actions = [
        parse_actions(task, defaults, getattr(task, 'actions', None), index)
        for index, task in enumerate(config.task_configs)
    ]
    if defaults:  # part of what the run is, like the actions that a task names itself
        tasks = [
            task.model_copy(update={'actions': {**defaults, **(getattr(task, 'actions', None) or {})}})
            for task in config.task_configs
        ]
        config = config.model_copy(update={'task_configs': tasks})
    order = [index for turn in range(max(repeats)) for index, repeat in enumerate(repeats) if turn < repeat]
    # not `update`, which copies deeply: repeated tasks stay one object
    repeated = config.model_copy(update={'task_configs': [config.task_configs[index] for index in order]})
    return RunFile(repeated, [actions[index] for index in order])


def _repeat(entry: Any, index: int) -> int:
    repeat = entry.get('repeat', 1) if isinstance(entry, Mapping) else 1
    if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
        raise ValueError(f'task_configs[{index}].repeat: expected an integer of 1 or more, got {repeat!r}')
    return repeat


def _warn_of_near_names(entry: Any, index: int) -> None:
    """Warn of unknown fields of a task, which it keeps as data, that are nearly named like a field of run files."""
    for name in map(str, entry.keys() - TaskCfg.model_fields.keys() if isinstance(entry, Mapping) else ()):
        if (meant := near_name(name, _OF_TASKS)) not in (None, name):
            log.warning('task_configs[%d] has no field %r, it is kept as data; did you mean %r?', index, name, meant)
