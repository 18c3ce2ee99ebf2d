"""Gymnasium spaces of a config, which its controllers and sensors say when they run."""

from internutopia.core.util.absent import absent

__getattr__ = absent(__name__)
