"""The logger of the whole project; it has no handler and no level of its own."""

import logging

from internutopia.core.util.absent import absent

log = logging.getLogger('internutopia')
"""The logger."""

_INSTEAD = "logging is configured as always in Python, e.g. logging.getLogger('internutopia').setLevel('ERROR')"

__getattr__ = absent(__name__, dict.fromkeys(('LogConfig', 'log_dict', 'config'), _INSTEAD))
