"""Poses, velocities and joint states of single parts, saved and put back: done for whole envs here."""

from internutopia.core.util.absent import absent

_INSTEAD = 'Env.get_state and Env.set_state save and restore envs, to the bit'
_NAMES = ('get_rigidbody_status', 'set_rigidbody_status', 'get_articulation_status', 'set_articulation_status')

__getattr__ = absent(__name__, dict.fromkeys(_NAMES, _INSTEAD))
