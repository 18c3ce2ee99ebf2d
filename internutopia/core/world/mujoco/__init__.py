"""MuJoCo on the CPU."""
