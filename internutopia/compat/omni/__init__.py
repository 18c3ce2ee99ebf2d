"""Helper modules of Isaac Sim, one module for each; `finder` makes them importable under its names."""
