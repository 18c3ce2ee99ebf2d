"""Scene: access of extension classes to their env."""

from internutopia.util.conventions import raise_if_gone

__getattr__ = raise_if_gone(__name__)
