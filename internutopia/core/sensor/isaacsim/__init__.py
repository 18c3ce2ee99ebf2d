"""Cameras under the class name that they have in 2.x."""

from internutopia.core.sensor.isaacsim.camera import IsaacsimCamera

__all__ = ['IsaacsimCamera']
