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

PICTURE_OPTIONS = ('render_mode', 'width', 'height', 'camera')
"""Arguments of `VectorEnv` that set what `render` returns, for any task."""


def make_single(task: str, **options: Any) -> SingleEnv:
    """Make one env of a task; `options` are of its `config`, or `PICTURE_OPTIONS`. ValueError for an unknown one."""
    from internutopia.rl.single_env import SingleEnv

    pictures = _taken_out(options)
    return SingleEnv(task_config(task, options), **pictures)


def make_vector(task: str, num_envs: int = 1, autoreset_mode: Any = 'NextStep', **options: Any) -> VectorEnv:
    """Make batched envs of a task; the other arguments are those of `make_single`."""
    from internutopia.rl.vector_env import VectorEnv

    pictures = _taken_out(options)
    config = task_config(task, {**options, 'num_envs': num_envs})
    return VectorEnv(config, autoreset_mode=autoreset_mode, **pictures)


def _taken_out(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the arguments about pictures from those of a task, and return them."""
    return {name: options.pop(name) for name in PICTURE_OPTIONS if name in options}


def task_config(module: str, options: Mapping[str, Any]) -> Config:
    """Return the config of a task's module. ValueError for an unknown option."""
    load_extensions()
    function = importlib.import_module(module).config
    known = inspect.signature(function).parameters
    for name in options:
        if name not in known:
            raise ValueError(f'task {module.rpartition(".")[2]!r} has no option {name!r}; {did_you_mean(name, known)}')
    return function(**options)
