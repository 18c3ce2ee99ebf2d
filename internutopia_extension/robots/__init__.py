"""Built-in robots; importing this package registers them."""

from internutopia_extension.robots import franka, generic, jetbot, legged

__all__ = ['franka', 'generic', 'jetbot', 'legged']
