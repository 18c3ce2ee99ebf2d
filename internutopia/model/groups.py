"""Groups of geoms and sites: those that renderers show and those that they leave out."""

BOTH_GROUP, VISUAL_GROUP, COLLIDER_GROUP = 0, 2, 3
"""Groups of geoms that are seen and collide, are only seen, and only collide; from the last one on nothing shows."""
FRAME_GROUP = 5
"""Group of sites that mark frames; they are never shown."""
