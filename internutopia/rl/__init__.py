"""Array front doors for learning: batched envs over the same scenes and episodes.

from internutopia.rl import VectorEnv

envs = VectorEnv(config)  # a gymnasium.vector.VectorEnv; `TaskCfg.learning` says what is learned
"""

from internutopia.rl.vector_env import VectorEnv

__all__ = ['VectorEnv']
