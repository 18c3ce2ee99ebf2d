"""Cameras under the class name that they have in 2.x."""
