"""Units of paths: distances that metrics are relative to. Configs take them from here, without NumPy."""

STEP = 0.25
"""Distance [m] between two points of a path, as of an agent's actions."""
STILL = 0.1
"""Length [m] of a path, or distance, that is no move: robots settle and sway where they stand."""
SCALE = 3.0
"""Distance [m] at which a path counts as off the reference: the radius of success in vision-and-language navigation."""
