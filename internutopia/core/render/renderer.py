"""Draws pictures of many envs at once, on threads of its own.

Each thread keeps its OpenGL context and what it holds of the models, see `canvas.py`. Threads start with the first
picture and end with `close`, at the latest with the process. A forked child starts threads of its own.
"""

from __future__ import annotations

import os
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.core.render.camera import CameraPose, Frame, Quality
from internutopia.core.render.canvas import Canvas


@dataclass(frozen=True)
class Scenery:
    """One env and the pictures to draw of it; the fields are arguments of `Canvas.draw`."""

    model: mujoco.MjModel
    state: NDArray[np.float64]
    labels: NDArray[np.int32]
    shots: Sequence[tuple[CameraPose, Frame]]


class Renderer:
    """Draws on at most `threads` threads."""

    def __init__(self, threads: int, quality: Quality):
        self._threads = threads
        self._quality: Quality = quality
        self._painters: list[_Painter] = []
        self._process = os.getpid()
        self._stop: Callable[[], Any] | None = None

    def draw(self, sceneries: Sequence[Scenery]) -> None:
        """Draw all pictures. NoOpenGLError if nothing can be rendered here."""
        self._start()
        # envs of one model side by side: few threads need each model
        ordered = sorted(sceneries, key=lambda scenery: id(scenery.model))
        count = min(self._threads, len(ordered))
        bounds = np.linspace(0, len(ordered), count + 1).round().astype(int).tolist()
        parts = [ordered[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
        drawn = [painter.paint(part) for painter, part in zip(self._painters, parts, strict=False)]
        errors = [error for future in drawn if (error := future.exception()) is not None]
        if errors:
            raise errors[0]

    def close(self) -> None:
        """End the threads and free what they hold; the next `draw` starts again."""
        if self._stop is not None and self._process == os.getpid():
            self._stop()
        self._painters, self._stop = [], None

    def _start(self) -> None:
        if self._process != os.getpid():  # threads do not survive a fork
            self._process, self._painters = os.getpid(), []
        if not self._painters:
            self._painters = [_Painter(self._quality) for _ in range(self._threads)]
            self._stop = weakref.finalize(self, _stop, self._painters, self._process)


class _Painter:
    """A thread with a canvas, both made when there is something to paint."""

    def __init__(self, quality: Quality):
        self._quality: Quality = quality
        self._jobs: queue.SimpleQueue[tuple[Sequence[Scenery], Future[None]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def paint(self, sceneries: Sequence[Scenery]) -> Future[None]:
        """Paint, while the caller does something else."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name='internutopia-renderer', daemon=True)
            self._thread.start()
        done: Future[None] = Future()
        self._jobs.put((sceneries, done))
        return done

    def stop(self) -> None:
        """End the thread, which frees its canvas."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        canvas: Canvas | None = None
        while (job := self._jobs.get()) is not None:
            sceneries, done = job
            try:
                canvas = canvas or Canvas(self._quality)
                for scenery in sceneries:
                    canvas.draw(scenery.model, scenery.state, scenery.labels, scenery.shots)
                done.set_result(None)
            except BaseException as error:
                done.set_exception(error)
            del job, sceneries, done  # nothing is kept alive while waiting
        if canvas is not None:
            canvas.free()


def _stop(painters: Sequence[_Painter], process: int) -> None:
    if process == os.getpid():
        for painter in painters:
            painter.stop()
