"""Built-in robots; importing this package registers them."""

from internutopia_extension.robots import (
    aliengo,
    franka,
    g1,
    generic,
    go2,
    gr1,
    h1,
    h1_with_hand,
    jetbot,
    ridgeback_franka,
)

__all__ = ['aliengo', 'franka', 'g1', 'generic', 'go2', 'gr1', 'h1', 'h1_with_hand', 'jetbot', 'ridgeback_franka']
