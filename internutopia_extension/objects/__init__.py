"""Built-in objects; importing this package registers them."""

from internutopia_extension.objects import dynamic_cube, static_cube, usd_object, visual_cube

__all__ = ['dynamic_cube', 'static_cube', 'usd_object', 'visual_cube']
