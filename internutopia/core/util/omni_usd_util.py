"""Questions about Isaac Sim's stage; there is none while a scene runs here."""

from internutopia.core.util.absent import absent

__getattr__ = absent(__name__)
