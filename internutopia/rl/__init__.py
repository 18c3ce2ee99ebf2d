"""Array API for learning: batched envs over the same scenes and episodes.

from internutopia.rl import VectorEnv

envs = VectorEnv(config)  # a gymnasium.vector.VectorEnv; `TaskCfg.learning` says what is learned

Importing this package registers the built-in ids, so that `gymnasium.make('InternUtopia/CartPole-v0')` works; what is
heavy is imported when it is used.
"""

from typing import TYPE_CHECKING, Any

from internutopia.rl.registration import make, register, register_task

if TYPE_CHECKING:
    from internutopia.rl.single_env import SingleEnv
    from internutopia.rl.vector_env import VectorEnv

__all__ = ['SingleEnv', 'VectorEnv', 'make', 'register', 'register_task']

register()


def __getattr__(name: str) -> Any:
    if name == 'SingleEnv':
        from internutopia.rl.single_env import SingleEnv

        return SingleEnv
    if name == 'VectorEnv':
        from internutopia.rl.vector_env import VectorEnv

        return VectorEnv
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
