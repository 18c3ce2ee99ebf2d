"""Task to train: a registered id, with options, as a `Config` and a `TrainingCfg`."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, get_type_hints

import gymnasium
from pydantic import TypeAdapter, ValidationError

from internutopia.config import Config
from internutopia.rl.registration import list_tasks
from internutopia.rl.task_envs import task_config
from internutopia.rl.training.engine import Engine
from internutopia.rl.training.settings import TrainingCfg
from internutopia.util import did_you_mean
from internutopia.util.imports import import_named

_NOT_OPTIONS = ('num_envs', 'seed', 'threads')  # given with every config


@dataclass(frozen=True)
class Task:
    """A task with its options; see `find_task`.

    Attributes:
        id: its id, perhaps with `module:` in front. Of a task that a file names it is data, and imports nothing.
        named: the module that the user named for it, and that was imported; empty for none.
        module: name of the module with its functions.
        options: options that were chosen, as they stand in a JSON file.
        arguments: these and those that belong to the id, as the module's functions want them.
    """

    id: str
    named: str
    module: str
    options: Mapping[str, Any]
    arguments: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Short name, as for a folder: `h1-velocity` for `InternUtopia/H1-Velocity-v0`."""
        return re.sub(r'-v\d+$', '', self.id.rpartition(':')[2].rpartition('/')[2]).lower()

    def config(
        self, num_envs: int, seed: int | None = None, threads: int | None = None, engine: Engine | None = None
    ) -> Config:
        """Return a config with that many envs of it.

        Args:
            num_envs: number of envs.
            seed: of everything random.
            threads: threads of the physics engine; None means one per core.
            engine: what computes physics; None means that of the task.
        """
        own = {'num_envs': num_envs, 'seed': seed} | ({} if threads is None else {'threads': threads})
        config = task_config(self.module, {**self.arguments, **own})
        return config if engine is None else engine.compute(config)

    def settings(self, **changes: Any) -> TrainingCfg:
        """Return its training settings, with some changed. ValidationError naming a setting that is wrong."""
        training = getattr(importlib.import_module(self.module), 'training', None)
        settings = TrainingCfg() if training is None else training(**self.arguments)
        return settings.update(**changes)


def find_task(env_id: str, options: Mapping[str, Any] | None = None) -> Task:
    """Return the task of an id that the user has named. One that comes out of a file is for `look_up_task`.

    Args:
        env_id: an id that `register_task` made known, as `module:id` if that module has to be imported for it.
            Modules in the current folder are found.
        options: keyword arguments of the task's function `config`: what a JSON file can hold.

    Raises:
        ValueError: there is no such module, id or option, or an option has a wrong value.
    """
    return look_up_task(env_id, options, env_id.rpartition(':')[0])


def look_up_task(env_id: str, options: Mapping[str, Any] | None = None, named: str = '') -> Task:
    """Return the task of an id, among those of installed packages and those that the program has registered.

    Args:
        env_id: the id; a `module:` in front of it is passed over.
        options: see `find_task`.
        named: a module that the user has named, which is imported first; empty for none.

    Raises:
        ValueError: there is no such task, `named` is no module, an option is unknown or has a wrong value.
    """
    if named:
        import_named(named)
    prefix, _, name = env_id.rpartition(':')
    known = list_tasks()
    if name not in known:
        error = f'there is no task {name!r}; {did_you_mean(name, known)}'
        if prefix != named:
            error += (
                f'\nThe file names module {prefix!r} for it, and files import nothing: use --trust (trust=True) to '
                f'import that module, or name the task yourself, --id {env_id}'
            )
        raise ValueError(error)
    arguments = dict(gymnasium.registry[name].kwargs)
    module = arguments.pop('task')
    arguments |= _checked(name, importlib.import_module(module), options or {})
    return Task(env_id, named, module, json.loads(json.dumps(options or {})), arguments)


def _checked(env_id: str, module: ModuleType, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as the types in the signature of the task's function."""
    known = [name for name in inspect.signature(module.config).parameters if name not in _NOT_OPTIONS]
    hints = get_type_hints(module.config)
    checked = {}
    for name, value in options.items():
        if name not in known:
            raise ValueError(f'task {env_id!r} has no option {name!r}; {did_you_mean(name, known)}')
        try:
            checked[name] = TypeAdapter(hints.get(name, Any)).validate_python(value)
        except ValidationError as error:
            reasons = '; '.join(fault['msg'] for fault in error.errors(include_url=False))
            raise ValueError(f'option {name!r} of task {env_id!r} cannot be {value!r}: {reasons}') from error
    return checked
