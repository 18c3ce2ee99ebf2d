"""The articulation class of Isaac Sim, which 2.x had here."""

from internutopia.core.util.absent import absent

_INSTEAD = 'a robot gets its handle from the scene, IArticulation.create(prim_path=config.prim_path) gives the same'

__getattr__ = absent(__name__, {'IsaacsimArticulation': _INSTEAD})
