"""Motion generation of Isaac Sim, which is not here."""

from internutopia.core.util.absent import absent

__getattr__ = absent(__name__)
