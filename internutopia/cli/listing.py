"""Command `internutopia list`: the names that configs can use, of all installed packages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium

from internutopia.asset_tools.listing import list_assets
from internutopia.cli.command import guarded
from internutopia.cli.demo import demo_files, first_line
from internutopia.core.registries import REGISTRIES
from internutopia.rl import list_tasks
from internutopia.rl.terms.registry import KINDS, registered_terms

Names = Mapping[str, str]  # name -> description, '' without one


def list_names(kind: str) -> int:
    """Print the names of a kind with their descriptions, one a line; returns the exit code."""
    return guarded('list', lambda: _print(LISTS[kind]()))


def _print(names: Names) -> int:
    width = max(map(len, names), default=0)
    for name in sorted(names):
        print(f'{name:{width}}  {names[name]}'.rstrip())
    return 0


def _of_registry(registry: str) -> Names:
    return {name: _meaning(cls) for name, cls in REGISTRIES[registry].items()}


def _scenes() -> Names:
    assets = list_assets()
    return {**dict.fromkeys(assets.builtin_scenes, 'built in'), **dict.fromkeys(assets.scenes, assets.folder)}


def _tasks() -> Names:
    return {env_id: gymnasium.registry[env_id].kwargs['task'] for env_id in list_tasks()}  # the module


def _terms() -> Names:
    return {f'{kind} {name}': _meaning(term) for kind in KINDS for name, term in registered_terms(kind).items()}


def _demos() -> Names:
    return {name: first_line(file) for name, file in demo_files().items()}


def _meaning(thing: Any) -> str:
    """Return the first line of its own docstring, not of an inherited one."""
    return inspect.cleandoc(thing.__doc__ or '').partition('\n')[0]


LISTS: dict[str, Callable[[], Names]] = {
    'robots': lambda: _of_registry('robot'),
    'controllers': lambda: _of_registry('controller'),
    'sensors': lambda: _of_registry('sensor'),
    'objects': lambda: _of_registry('object'),
    'metrics': lambda: _of_registry('metric'),
    'rewards': lambda: _of_registry('reward'),
    'task-types': lambda: _of_registry('task'),
    'scenes': _scenes,
    'tasks': _tasks,
    'terms': _terms,
    'demos': _demos,
}
"""The names of each kind."""
