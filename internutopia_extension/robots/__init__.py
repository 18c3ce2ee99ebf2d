"""Built-in robots; importing this package registers them."""

from internutopia_extension.robots import generic, h1, jetbot

__all__ = ['generic', 'h1', 'jetbot']
