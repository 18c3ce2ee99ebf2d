"""Robots, controllers and tasks for InternUtopia."""


def import_extensions() -> None:
    """Register the built-in classes, then those of this package."""
    import internutopia_extension

    internutopia_extension.import_extensions()
    from my_robots import controllers, robots, tasks  # noqa: F401 - importing them registers their classes
