"""Robots and links under the class names that they have in 2.x."""
