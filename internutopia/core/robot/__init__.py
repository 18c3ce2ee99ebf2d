"""Robots: base classes, handles and registries."""
