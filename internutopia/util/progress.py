"""Progress of a long computation: a bar in a terminal, else lines in the log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from internutopia.util.log import log

ItemT = TypeVar('ItemT')

DELAY = 2.0
"""Time [s] before a bar is shown."""
LOG_INTERVAL = 30.0
"""Time [s] between lines in the log."""


@contextmanager
def progress_bar(what: str, total: int | None) -> Iterator[Callable[[], None]]:
    """Show a bar on standard error; yields a function that advances it by one. It is gone at the end.

    It also estimates the time that is left. Where standard error is no terminal, the log has that instead. Without rich
    there is neither.

    Args:
        what: is done, such as 'reading meshes'.
        total: how many there are to do; None if unknown.
    """
    try:
        from rich import progress
        from rich.console import Console
    except ImportError:
        yield lambda: None
        return
    console = Console(stderr=True)
    text, counts = progress.TextColumn, progress.MofNCompleteColumn()
    times = progress.TimeElapsedColumn(), text('left:'), progress.TimeRemainingColumn()
    columns = text('{task.description}'), progress.BarColumn(), counts, *times
    bar = progress.Progress(*columns, console=console, transient=True)
    task = bar.add_task(what, total=total)
    begin = logged = time.monotonic()
    with ExitStack() as shown:

        def advance() -> None:
            nonlocal logged
            bar.advance(task)
            now, done = time.monotonic(), bar.tasks[0].completed
            if console.is_terminal and not bar.live.is_started and now - begin >= DELAY:
                shown.enter_context(bar)
            if not console.is_terminal and now - logged >= LOG_INTERVAL:
                logged = now
                left = f' of {total}, about {(now - begin) * (total / done - 1):.0f} s left' if total else ''
                log.info('%s: %d%s', what, done, left)

        yield advance


def with_progress(items: Iterable[ItemT], what: str, total: int) -> Iterator[ItemT]:
    """Iterate over items with a `progress_bar`."""
    with progress_bar(what, total) as advance:
        for item in items:
            yield item
            advance()
