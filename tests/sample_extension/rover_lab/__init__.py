"""Sample extension package, as somebody else would write it: one class of each kind, per env and batched."""


def import_extensions() -> None:
    """Registers the built-in classes, then those of this package."""
    import internutopia_extension

    internutopia_extension.import_extensions()
    from rover_lab import controllers, metrics, objects, rewards, robots, sensors, tasks  # noqa: F401
