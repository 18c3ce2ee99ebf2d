"""Scene of an env under the class name that it has in 2.x."""

from internutopia.core.scene.isaacsim.scene import IsaacsimScene

__all__ = ['IsaacsimScene']
