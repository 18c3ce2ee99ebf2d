"""Path of InternUtopia 2.x; see `internutopia.config`."""

from internutopia.config import *  # noqa: F403 - the same names
from internutopia.config import __all__ as __all__
