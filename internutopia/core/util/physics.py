"""Colliders of prims under the path of 2.x; see `internutopia.compat.v2.core_util`."""

from internutopia.compat.v2.core_util import (
    activate_collider,
    activate_collider_,
    deactivate_collider,
    deactivate_collider_,
    remove_collider,
    remove_collider_,
    set_collider,
    set_collider_,
)

__all__ = [
    'activate_collider',
    'activate_collider_',
    'deactivate_collider',
    'deactivate_collider_',
    'remove_collider',
    'remove_collider_',
    'set_collider',
    'set_collider_',
]
