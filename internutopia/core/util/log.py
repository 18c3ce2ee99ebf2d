"""The logger of the whole project; it has no handler and no level of its own."""

import logging

from internutopia.compat.v2.gone import raise_if_gone

log = logging.getLogger('internutopia')
"""The logger."""

__getattr__ = raise_if_gone(__name__)
