"""Built-in robots; importing this package registers them."""

from internutopia_extension.robots import aliengo, g1, generic, gr1, h1, h1_with_hand, jetbot

__all__ = ['aliengo', 'g1', 'generic', 'gr1', 'h1', 'h1_with_hand', 'jetbot']
