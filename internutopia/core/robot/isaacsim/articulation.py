"""The articulation class of Isaac Sim, which 2.x had here."""

from internutopia.core.util.absent import absent

__getattr__ = absent(__name__)
