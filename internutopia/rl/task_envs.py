"""Factories of the envs of learning tasks, which the entry points of their Gymnasium ids name."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from internutopia.util import did_you_mean
from internutopia.util.imports import load_extensions

if TYPE_CHECKING:
    from internutopia.config import Config
    from internutopia.rl.single_env import SingleEnv
    from internutopia.rl.vector_env import VectorEnv

_PICTURE_OPTIONS = ('render_mode', 'width', 'height', 'camera')


def make_single(task: str, **options: Any) -> SingleEnv:
    """Make one env of a task.

    Args:
        task: name of the task's module.
        **options: of its `config`; `render_mode`, `width`, `height` and `camera` of `SingleEnv`; `clip_actions` of
            `LearningCfg`, in place of the task's own.

    Raises:
        TypeError: an option is none of these.
    """
    from internutopia.rl.single_env import SingleEnv

    config, pictures = _split(task, options)
    return SingleEnv(config, **pictures)


def make_vector(task: str, num_envs: int = 1, autoreset_mode: Any = 'NextStep', **options: Any) -> VectorEnv:
    """Make batched envs of a task; the other arguments are those of `make_single`."""
    from internutopia.rl.vector_env import VectorEnv

    config, pictures = _split(task, {**options, 'num_envs': num_envs})
    return VectorEnv(config, autoreset_mode=autoreset_mode, **pictures)


def _split(task: str, options: dict[str, Any]) -> tuple[Config, dict[str, Any]]:
    """Return the config that options of a task name, and those of them that are about images."""
    clip = options.pop('clip_actions', None)
    pictures = {name: options.pop(name) for name in _PICTURE_OPTIONS if name in options}
    config = task_config(task, options)
    return config if clip is None else with_learning(config, clip_actions=clip), pictures


def task_config(module: str, options: Mapping[str, Any]) -> Config:
    """Return the config of a task's module. TypeError for an unknown option, as of any function."""
    load_extensions()
    function = importlib.import_module(module).config
    known = inspect.signature(function).parameters
    for name in options:
        if name not in known:  # TorchRL takes options away as long as an error has Python's own words
            task = module.rpartition('.')[2]
            raise TypeError(f'task {task!r} got an unexpected keyword argument {name!r}; {did_you_mean(name, known)}')
    return function(**options)


def with_learning(config: Config, **changes: Any) -> Config:
    """Return the same envs with fields of their learning config changed."""
    tasks = [
        task.model_copy(update={'learning': None if task.learning is None else task.learning.update(**changes)})
        for task in config.task_configs
    ]
    return config.model_copy(update={'task_configs': tasks})
