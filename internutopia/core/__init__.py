"""The simulation itself: configs, scenes, worlds, robots, sensors, tasks and the list API."""
