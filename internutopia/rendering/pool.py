"""Renderer pool of a world: one renderer per quality, made when the first picture of that quality is requested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from internutopia.rendering.camera import Quality, RenderRequest

if TYPE_CHECKING:
    from internutopia.rendering.renderer import Renderer

# Of an env: its model, its state (`mjSTATE_INTEGRATION`), and the label of each geom
EnvSnapshot = tuple[mujoco.MjModel, NDArray[np.float64], NDArray[np.int32]]


class RendererPool:
    """Renderers of `threads` threads each; pictures have the given quality by default."""

    def __init__(self, threads: int, quality: Quality):
        self._threads = threads
        self._quality: Quality = quality
        self._renderers: dict[Quality, Renderer] = {}

    def render(
        self, requests: Sequence[RenderRequest], quality: Quality | None, snapshot: Callable[[int], EnvSnapshot]
    ) -> None:
        """Render pictures of envs, whose `snapshot` is taken once each. NoOpenGLError if nothing can be rendered."""
        from internutopia.rendering.renderer import Renderer, RenderJob

        quality = quality or self._quality
        if quality not in self._renderers:
            self._renderers[quality] = Renderer(self._threads, quality)
        by_env: dict[int, list[RenderRequest]] = {}
        for request in requests:
            by_env.setdefault(request.env_id, []).append(request)
        self._renderers[quality].render([RenderJob(*snapshot(env_id), own) for env_id, own in by_env.items()])

    def close(self) -> None:
        """Stop the threads; the next picture starts them again."""
        for renderer in self._renderers.values():
            renderer.close()
