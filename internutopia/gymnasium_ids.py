"""Gymnasium ids of learning tasks: names only; the code of an env is imported when it is made.

`import internutopia` makes Gymnasium know the ids that come with it, at once or when Gymnasium is imported: neither of
the two waits for the other one, nor loads it.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from typing_extensions import override

GROUP = 'internutopia.learning_tasks'
"""Entry points of packages that announce learning tasks."""
VECTOR_ENTRY_POINT = 'internutopia.rl.task_envs:make_vector'
"""Entry point of the specs of these ids, and of those that `register_task` adds, which identifies them."""

_OWN = 'internutopia_extension'  # entry point of the tasks that come with this package


def register_task(env_id: str, module: str, **options: Any) -> None:
    """Register an id of a task with Gymnasium and `internutopia train`; a registered id stays as it is.

    Args:
        env_id: the id, e.g. `'MyRobots/Dog-Velocity-v0'`.
        module: name of the module that has the task's function `config(num_envs, seed, ...)`, which gives a `Config`,
            and perhaps a function `training(**options)` that gives the `TrainingCfg` to start from.
        **options: arguments of these functions that belong to the id.
    """
    from gymnasium.envs import registration

    if env_id not in registration.registry:
        registration.register(
            env_id,
            entry_point='internutopia.rl.task_envs:make_single',
            vector_entry_point=VECTOR_ENTRY_POINT,
            kwargs={'task': module} | options,
        )


def register_tasks(tasks: Mapping[str, tuple[str, Mapping[str, Any]]]) -> None:
    """Register the ids of a package, each with its module and options."""
    for env_id, (module, options) in tasks.items():
        register_task(env_id, module, **options)


def register_own_tasks() -> None:
    """Register the ids of this package, as soon as Gymnasium is imported."""
    if 'gymnasium' not in sys.modules:
        sys.meta_path.insert(0, _GymnasiumFinder())
        return
    for entry_point in importlib.metadata.entry_points(group=GROUP, name=_OWN):
        register_tasks(entry_point.load())


class _GymnasiumFinder(MetaPathFinder):
    """Import hook that registers the ids after Gymnasium has been imported."""

    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname == 'gymnasium' else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                sys.meta_path.remove(self)
                register_own_tasks()

            spec.loader.exec_module = exec_module  # pyright: ignore[reportAttributeAccessIssue]
        return spec
