"""Progress bar of a long computation, in a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

ItemT = TypeVar('ItemT')

DELAY = 2.0
"""Time [s] before a bar is shown."""


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[[], None]]:
    """Show a bar on standard error; yields a function that advances it by one. It is gone at the end.

    There is none unless standard error is a terminal and rich installed.

    Args:
        what: is done, such as 'reading meshes'.
        total: how many there are to do; None if unknown.
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


def with_progress(items: Iterable[ItemT], what: str, total: int) -> Iterator[ItemT]:
    """Iterate over items with a `progress_bar`."""
    with progress_bar(what, total) as advance:
        for item in items:
            yield item
            advance()
