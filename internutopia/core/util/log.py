"""The logger of the whole project; it has no handler and no level of its own."""

import logging

from internutopia.core.util.absent import absent

log = logging.getLogger('internutopia')
"""The logger."""

__getattr__ = absent(__name__)
