"""Progress bar of something that takes long, in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

DELAY = 2.0
"""What is done within so many seconds shows no bar."""


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[[], None]]:
    """A bar on standard error that the function it gives advances by one; it is gone at the end.

    There is none unless standard error is a terminal and rich installed.

    Args:
        what: is done, such as 'reading meshes'.
        total: how many there are to do; None if nobody knows.
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield lambda: None
        return
    console = Console(stderr=True)
    columns = TextColumn('{task.description}'), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(what, total=total)
    begin = time.monotonic()
    with ExitStack() as shown:

        def advance() -> None:
            bar.advance(task)
            if console.is_terminal and not bar.live.is_started and time.monotonic() - begin >= DELAY:
                shown.enter_context(bar)

        yield advance
