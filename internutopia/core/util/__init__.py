"""Path of InternUtopia 2.x; see `internutopia.util`."""

from internutopia.compat.v2.gone import raise_if_gone
from internutopia.util import has_display, is_in_container, log, remove_suffix

__all__ = ['has_display', 'is_in_container', 'log', 'remove_suffix']

__getattr__ = raise_if_gone(__name__)
