"""Comparison of physics engines: trials of a robot, and the same episodes, on each of them."""
