"""`omni.usd`: the way to the stage.

The stage is `internutopia.compat.omni.mirror.current_stage`, whatever the name of the context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from internutopia.compat.omni import mirror

if TYPE_CHECKING:
    from pxr import Usd


class UsdContext:
    """Context that holds the stage."""

    def get_stage(self) -> Usd.Stage:
        """Return the stage, up to date with the envs."""
        return mirror.current_stage()


def get_context(name: str = '') -> UsdContext:
    """Return the context."""
    return UsdContext()
