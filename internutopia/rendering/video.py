"""Videos, written frame by frame.

A file appears when it is complete: until then it is written next to it under another name.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util import did_you_mean
from internutopia.util.imports import install_hint

Image = NDArray[np.uint8]

SUFFIXES = ('.mp4', '.gif')
_FAST = ['-preset', 'veryfast']  # half the time of libx264's default, at the same size for images as plain as ours


class Video:
    """A video file, a context manager: `with Video(path, rate) as video: video.add(image)`.

    Args:
        path: `.mp4` or `.gif`.
        rate: frames per second.

    Raises:
        ValueError: another suffix.
        ImportError: the library that writes such a file is missing; the message has the pip command.
    """

    def __init__(self, path: Path, rate: float):
        if path.suffix not in SUFFIXES:
            raise ValueError(
                f'{path}: suffix {path.suffix!r} is not one of those that can be written; '
                f'{did_you_mean(path.suffix, SUFFIXES)}'
            )
        self.path = path
        self._draft = path.with_name(f'{path.stem}.part{path.suffix}')
        self._encoder = (_mp4 if path.suffix == '.mp4' else _gif)(self._draft, rate)
        next(self._encoder)

    def add(self, image: Image) -> None:
        """Append an image, RGB `(height, width, 3)`, of the same size as the others."""
        self._encoder.send(image)

    def close(self) -> None:
        """Finish the file; nothing appears if it has no frame."""
        self._encoder.close()
        if self._draft.exists():
            os.replace(self._draft, self.path)

    def __enter__(self) -> Video:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None or issubclass(kind, KeyboardInterrupt):
                self.close()
        finally:
            self._encoder.close()
            self._draft.unlink(missing_ok=True)


def _mp4(path: Path, rate: float) -> Generator[None, Image, None]:
    try:
        import imageio_ffmpeg  # pyright: ignore[reportMissingImports] - an extra
    except ImportError as error:
        raise ImportError(
            f'an MP4 video needs imageio-ffmpeg ({error}): {install_hint("video")}, or write a .gif'
        ) from error
    writer: Any = None
    options: dict[str, Any] = {'fps': rate, 'macro_block_size': 2, 'output_params': _FAST}
    try:
        while True:
            image = yield
            if writer is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                size = image.shape[1::-1]
                writer = imageio_ffmpeg.write_frames(os.fspath(path), size, **options)
                writer.send(None)
            writer.send(np.ascontiguousarray(image))
    finally:
        if writer is not None:
            writer.close()


def _gif(path: Path, rate: float) -> Generator[None, Image, None]:
    try:
        from PIL import Image as Pictures
    except ImportError as error:
        raise ImportError(f'a GIF needs pillow ({error}): {install_hint("cli")}') from error
    images: list[Any] = []
    try:
        while True:
            image = yield
            images.append(Pictures.fromarray(image))
    finally:
        if images:
            path.parent.mkdir(parents=True, exist_ok=True)
            images[0].save(path, save_all=True, append_images=images[1:], duration=round(1000 / rate), loop=0)
