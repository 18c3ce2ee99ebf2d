"""Scene: what extension classes see of the env that they live in."""
