"""Registered classes for worker processes, which get them by themselves here."""

from internutopia.core.util.absent import absent

__getattr__ = absent(__name__)
