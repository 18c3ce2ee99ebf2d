"""2.x path of `LayoutEditMocapControlledCamera`."""

from internutopia_extension.sensors.mocap_controlled_camera import LayoutEditMocapControlledCamera

__all__ = ['LayoutEditMocapControlledCamera']
