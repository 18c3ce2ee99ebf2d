"""Camera class of 2.x. Cameras are made by `ICamera.create`: the name serves annotations and `isinstance`."""

from internutopia.core.sensor.camera import ICamera as IsaacsimCamera

__all__ = ['IsaacsimCamera']
