"""Models: what a scene is made of, and how that becomes one compiled MuJoCo model."""
