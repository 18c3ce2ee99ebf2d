"""The arm under its name of 2.x."""

from internutopia_extension.robots.franka import MocapControlledFrankaRobot

__all__ = ['MocapControlledFrankaRobot']
