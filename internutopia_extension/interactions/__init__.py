"""Input devices to steer robots with; importing this package registers them."""

from internutopia_extension.interactions import keyboard, motion_capture

__all__ = ['keyboard', 'motion_capture']
