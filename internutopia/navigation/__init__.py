"""Navigation: episodes, maps, paths and metrics."""
