"""InternUtopia: vectorized robot simulation on one batched physics world.

Importing this package loads nothing else; start from `internutopia.core.config` and `internutopia.core.vec_env`.
"""

__version__ = '3.0.0a1'
