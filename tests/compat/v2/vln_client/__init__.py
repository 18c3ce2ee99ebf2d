"""A package in the manner of those written for InternUtopia 2.x on Isaac Sim: it follows instructions through flats.

Its classes override what such packages override, in the order that they rely on, and import `omni.*` when they are
called. Nothing here knows which physics engine runs.
"""


def import_extensions() -> None:
    """Register the classes; after `Config(...)`, before `Env(...)`."""
    from internutopia_extension import import_extensions as import_built_in

    import_built_in()
    from . import flash, metrics, robots, sensors, tasks, walking  # noqa: F401
