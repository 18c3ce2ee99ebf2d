"""Scene class of 2.x. Scenes are made by the env: the name serves annotations and `isinstance`."""

from internutopia.core.scene.scene import IScene as IsaacsimScene

__all__ = ['IsaacsimScene']
