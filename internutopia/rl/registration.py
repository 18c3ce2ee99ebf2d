"""Ids of learning tasks, for `gymnasium.make` and `gymnasium.make_vec`.

Installed packages announce their ids by entry points of the group `internutopia.learning_tasks`, each of which names a
mapping from id to `(module, options)`, see `register_task`. `import internutopia.rl` registers them, also as
`gymnasium.make('internutopia.rl:MyRobots/Dog-Velocity-v0')`, `import internutopia` those that come with it
(`internutopia.gymnasium_ids`); nothing heavy is imported before an env is made. Keyword
arguments of `gymnasium.make` are those of the function `config` of the task's module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gymnasium.envs.registration import registry

from internutopia.gymnasium_ids import GROUP, VECTOR_ENTRY_POINT, register_task, register_tasks
from internutopia.util.imports import for_each_entry_point

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

__all__ = ['list_tasks', 'make', 'register', 'register_task']

Wrapper = Callable[['gymnasium.Env[Any, Any]'], 'gymnasium.Env[Any, Any]']


def register() -> None:
    """Register the ids of installed packages with Gymnasium; may be called twice.

    Episode lengths are the task's, not those of a `TimeLimit`.
    """
    for_each_entry_point(GROUP, register_tasks)


def list_tasks() -> list[str]:
    """Return the sorted ids of all installed learning tasks: for `gymnasium.make` and `internutopia train`."""
    register()
    return sorted(env_id for env_id, spec in registry.items() if spec.vector_entry_point == VECTOR_ENTRY_POINT)


def make(
    id: str,
    num_envs: int = 1,
    asynchronous: bool = True,
    wrappers: Wrapper | Iterable[Wrapper] | None = None,
    disable_env_checker: bool | None = None,
    **kwargs: Any,
) -> AsyncVectorEnv | SyncVectorEnv:
    """Make several copies of a registered env, as `gym.vector.make` of older versions made them.

    Envs made by `gymnasium.make_vec(id, num_envs)` are batched instead, and much faster.

    Args:
        id: id of the env.
        num_envs: number of copies.
        asynchronous: whether each copy runs in a separate process.
        wrappers: applied to each copy, in this order.
        disable_env_checker: whether the first copy goes without Gymnasium's checks; the others always do.
        **kwargs: passed to `gymnasium.make`.
    """
    import gymnasium
    from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv

    layers = [wrappers] if callable(wrappers) else list(wrappers or [])

    def maker(index: int) -> Callable[[], gymnasium.Env[Any, Any]]:
        def make_one() -> gymnasium.Env[Any, Any]:
            env = gymnasium.make(id, disable_env_checker=True if index else disable_env_checker, **kwargs)
            for wrapper in layers:
                env = wrapper(env)
            return env

        return make_one

    makers = [maker(index) for index in range(num_envs)]
    return AsyncVectorEnv(makers) if asynchronous else SyncVectorEnv(makers)
