"""Scene of an env under the class name that it has in 2.x."""
