"""The camera under its name of 2.x."""

from internutopia_extension.sensors.mocap_controlled_camera import LayoutEditMocapControlledCamera

__all__ = ['LayoutEditMocapControlledCamera']
