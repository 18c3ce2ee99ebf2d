"""Reading checkpoints of rsl_rl, for which there are policy files here."""

from internutopia.core.util.absent import absent

__getattr__ = absent(__name__)
