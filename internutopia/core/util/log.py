"""The logger of the whole project; it has no handler and no level of its own."""

import logging
from functools import lru_cache

from internutopia.compat.v2.gone import raise_if_gone

log = logging.getLogger('internutopia')
"""The logger."""


@lru_cache(10_000)
def warn_once(message: str, *args: object) -> None:
    """Log a warning; the same one, of equal arguments, only once in a process."""
    log.warning(message, *args)


__getattr__ = raise_if_gone(__name__)
