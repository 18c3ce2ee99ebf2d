"""Rigid body class of 2.x; see `internutopia.compat.v2.handles`."""

from internutopia.compat.v2.handles import IsaacsimRigidBody

__all__ = ['IsaacsimRigidBody']
