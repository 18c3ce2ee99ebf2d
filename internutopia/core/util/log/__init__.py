"""Path of InternUtopia 2.x; see `internutopia.util.log`."""

from internutopia.util.conventions import raise_if_gone
from internutopia.util.log import log

__all__ = ['log']

__getattr__ = raise_if_gone(__name__)
