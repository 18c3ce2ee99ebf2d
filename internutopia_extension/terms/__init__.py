"""Built-in terms of learning that need more than the physics; importing this package registers them."""

from internutopia_extension.terms import point_goal

__all__ = ['point_goal']
