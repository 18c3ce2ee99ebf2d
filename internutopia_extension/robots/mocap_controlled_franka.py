"""2.x path of `MocapControlledFrankaRobot`."""

from internutopia_extension.robots.franka import MocapControlledFrankaRobot

__all__ = ['MocapControlledFrankaRobot']
