"""Run files: the YAML form of a `Config`, plus the actions of the robots.

Beside the fields of `Config` a run file may have

- `actions` at the top: `{robot: {controller: SPEC}}`, the actions of the robots in every task (see `actions.py`);
- `actions` in a task: the same for this task; a robot named here has none of the actions at the top;
- `repeat: N` in a task: the task is run N times. The list of tasks is iterated again and again, each time leaving
  out the tasks that have had their share, so that neighbouring envs run different tasks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from internutopia.cli.run_actions import TaskActions, parse_actions
from internutopia.config import Config, TaskCfg
from internutopia.config.yaml_file import expanded, read_mapping
from internutopia.util import did_you_mean, log, near_name
from internutopia.util.bounds import MAX_EPISODES

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
        values['task_configs'] = [_without(entry, 'repeat') for entry in entries]
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


def _without(entry: Any, key: str) -> Any:
    # YAML anchors make entries share mappings: a copy
    return {name: value for name, value in entry.items() if name != key} if isinstance(entry, Mapping) else entry
