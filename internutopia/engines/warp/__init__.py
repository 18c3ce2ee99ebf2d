"""MuJoCo Warp, on a GPU."""
