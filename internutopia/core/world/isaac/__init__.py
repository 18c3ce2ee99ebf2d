"""Isaac Sim."""
