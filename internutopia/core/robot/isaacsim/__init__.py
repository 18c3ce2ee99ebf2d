"""Robots and links under the class names that they have in 2.x."""

from internutopia.core.robot.isaacsim.articulation import IsaacsimArticulation
from internutopia.core.robot.isaacsim.rigid_body import IsaacsimRigidBody

__all__ = ['IsaacsimArticulation', 'IsaacsimRigidBody']
