"""Path of InternUtopia 2.x; see `internutopia.util`."""

from internutopia.core.util.log import log  # before the name `log` of the module hides it
from internutopia.util import has_display, is_in_container, remove_suffix
from internutopia.util.conventions import raise_if_gone

__all__ = ['has_display', 'is_in_container', 'log', 'remove_suffix']

__getattr__ = raise_if_gone(__name__)
