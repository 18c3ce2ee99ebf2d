"""InternUtopia: vectorized robot simulation on one batched physics world.

Importing this package loads nothing heavy; start from `internutopia.core.config` and `internutopia.core.vec_env`.
"""

from internutopia.compat.v2 import gone

__version__ = '3.0.0a1'

gone.install()
