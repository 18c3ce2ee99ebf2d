"""Articulation class of 2.x; see `internutopia.compat.v2.handles`."""

from internutopia.compat.v2.handles import IsaacsimArticulation

__all__ = ['IsaacsimArticulation']
