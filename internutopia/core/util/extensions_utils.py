"""Registered classes for worker processes, which get them by themselves here."""

from internutopia.core.util.absent import absent

_INSTEAD = 'workers of a distributed run get all registered classes, rewards too, without a call'
_NAMES = ('dump_extensions', 'reload_extensions')

__getattr__ = absent(__name__, dict.fromkeys(_NAMES, _INSTEAD))
