"""Renderers: images of many envs at once, on their own threads, one renderer per quality.

Each thread keeps its OpenGL context and what it holds of the models, see `canvas.py`. Threads start with the first
image and end with `close`, at the latest with the process. A forked child starts threads of its own. Where images
are rendered on the processor, in sequence (`gl.py`), there is one thread.
"""

from __future__ import annotations

import os
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.rendering.camera import Quality, RenderRequest
from internutopia.rendering.canvas import Canvas


@dataclass(frozen=True)
class RenderJob:
    """One env and the images to render of it; the fields are arguments of `Canvas.render`."""

    model: mujoco.MjModel
    state: NDArray[np.float64]
    labels: NDArray[np.int32]
    requests: Sequence[RenderRequest]


class Renderer:
    """Renderer on at most `threads` threads."""

    def __init__(self, threads: int, quality: Quality):
        self._threads = threads
        self._quality: Quality = quality
        self._workers: list[_RenderThread] = []
        self._process = os.getpid()
        self._stop: Callable[[], Any] | None = None

    def render(self, jobs: Sequence[RenderJob]) -> None:
        """Render all images. NoOpenGLError if nothing can be rendered here."""
        self._start()
        # envs of one model side by side: few threads need each model
        ordered = sorted(jobs, key=lambda job: id(job.model))
        count = min(1 if self._workers[0].in_software else self._threads, len(ordered))
        bounds = np.linspace(0, len(ordered), count + 1).round().astype(int).tolist()
        parts = [ordered[a:b] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
        rendered = [worker.submit(part) for worker, part in zip(self._workers, parts, strict=False)]
        errors = [error for future in rendered if (error := future.exception()) is not None]
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Stop the threads and free their resources; the next `render` starts them again."""
        if self._stop is not None and self._process == os.getpid():
            self._stop()
        self._workers, self._stop = [], None

    def _start(self) -> None:
        if self._process != os.getpid():  # threads do not survive a fork
            self._process, self._workers = os.getpid(), []
        if not self._workers:
            self._workers = [_RenderThread(self._quality) for _ in range(self._threads)]
            self._stop = weakref.finalize(self, _stop, self._workers, self._process)


class _RenderThread:
    """A thread with a canvas, both created with the first job."""

    def __init__(self, quality: Quality):
        self._quality: Quality = quality
        self._queue: queue.SimpleQueue[tuple[Sequence[RenderJob], Future[bool]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    @cached_property
    def in_software(self) -> bool:
        """True if it renders on the CPU. NoOpenGLError if nothing can be rendered here."""
        return self.submit([]).result()

    def submit(self, jobs: Sequence[RenderJob]) -> Future[bool]:
        """Render in the background; the future's result is True if it is done on the CPU."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name='internutopia-renderer', daemon=True)
            self._thread.start()
        done: Future[bool] = Future()
        self._queue.put((jobs, done))
        return done

    def stop(self) -> None:
        """Stop the thread, which frees its canvas."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        canvas: Canvas | None = None
        while (item := self._queue.get()) is not None:
            jobs, done = item
            try:
                canvas = canvas or Canvas(self._quality)
                for job in jobs:
                    canvas.render(job.model, job.state, job.labels, job.requests)
                done.set_result(canvas.in_software)
            except BaseException as error:
                done.set_exception(error)
            item = jobs = job = done = None  # nothing is kept alive while waiting
        if canvas is not None:
            canvas.free()


def _stop(workers: Sequence[_RenderThread], process: int) -> None:
    if process == os.getpid():
        for worker in workers:
            worker.stop()


# Of an env: its model, its state (`mjSTATE_INTEGRATION`), and the label of each geom
EnvSnapshot = tuple[mujoco.MjModel, NDArray[np.float64], NDArray[np.int32]]


class RendererPool:
    """Renderers of `threads` threads each; images have the given quality by default."""

    def __init__(self, threads: int, quality: Quality):
        self._threads = threads
        self._quality: Quality = quality
        self._renderers: dict[Quality, Renderer] = {}

    def render(
        self, requests: Sequence[RenderRequest], quality: Quality | None, snapshot: Callable[[int], EnvSnapshot]
    ) -> None:
        """Render images of envs, whose `snapshot` is taken once each. NoOpenGLError if nothing can be rendered."""
        quality = quality or self._quality
        if quality not in self._renderers:
            self._renderers[quality] = Renderer(self._threads, quality)
        by_env: dict[int, list[RenderRequest]] = {}
        for request in requests:
            by_env.setdefault(request.env_id, []).append(request)
        self._renderers[quality].render([RenderJob(*snapshot(env_id), own) for env_id, own in by_env.items()])

    def close(self) -> None:
        """Stop the threads; the next image starts them again."""
        for renderer in self._renderers.values():
            renderer.close()
