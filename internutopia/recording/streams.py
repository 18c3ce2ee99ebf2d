"""Picture streams: frames that go to a file while an episode runs, since an episode of them does not fit into memory.

A stream writes `<name>.part`, and `<name>` when it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from internutopia.util.imports import install_hint

CODEC = 'libx264'
PART = '.part'
_KEY_FRAMES = '2'  # every second one, so that single frames are found fast
_QUALITY = {'libx264': {'crf': '18', 'preset': 'veryfast', 'g': _KEY_FRAMES, 'threads': '1', 'bf': '0'}}
_SAMPLED = 16  # pixels, between two that count for statistics


class FrameStream(Protocol):
    """A file of equal arrays, one after the other."""

    path: Path
    info: dict[str, Any]  # shape and dtype of a frame, kind of file, statistics of pixels
    frames: int  # that were added

    def add(self, frame: NDArray[Any]) -> None:
        """Append a frame. OSError if it cannot be written."""
        ...

    def close(self) -> None:
        """Complete the file; may be called twice. OSError if it cannot be written."""
        ...

    def discard(self) -> None:
        """Remove the file, unless it is complete."""
        ...


class RawStream:
    """Frames as they are, uncompressed, in C order."""

    def __init__(self, path: Path, frame: NDArray[Any]):
        self.path = path
        self.info: dict[str, Any] = {'kind': 'raw', 'shape': list(frame.shape), 'dtype': str(frame.dtype)}
        self._part = path.with_name(path.name + PART)
        self._file = open(self._part, 'wb')
        self.frames = 0

    def add(self, frame: NDArray[Any]) -> None:
        """Append a frame. OSError if it cannot be written."""
        self._file.write(frame.tobytes())
        self.frames += 1

    def close(self) -> None:
        """Complete the file; may be called twice. OSError if it cannot be written."""
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._part, self.path)

    def discard(self) -> None:
        """Remove the file, unless it is complete."""
        with suppress(OSError):  # what is buffered cannot be written, and need not be
            self._file.close()
        self._part.unlink(missing_ok=True)


class VideoStream:
    """Colour pictures as an MP4 video of `fps` frames per second."""

    def __init__(self, path: Path, frame: NDArray[np.uint8], fps: int, codec: str = CODEC):
        import av

        height, width = frame.shape[:2]
        even = height % 2 == 0 and width % 2 == 0
        self.path = path
        self.info: dict[str, Any] = {'kind': 'video', 'shape': [height, width, 3], 'dtype': 'uint8'}
        self._part = path.with_name(path.name + PART)
        self._container = av.open(os.fspath(self._part), 'w', format='mp4')
        self._stream: Any = self._container.add_stream(codec, fps, options=_QUALITY.get(codec, {'g': _KEY_FRAMES}))
        self._stream.width, self._stream.height = width, height
        self._stream.pix_fmt = 'yuv420p' if even else 'yuv444p'  # the usual one halves both sides
        self._stream.codec_context.time_base = Fraction(1, fps)
        self.frames = 0
        self._pixels: list[NDArray[np.uint8]] = []
        self._closed = False

    def add(self, frame: NDArray[np.uint8]) -> None:
        """Append a frame. OSError if it cannot be written."""
        import av

        picture = np.ascontiguousarray(frame)
        self._pixels.append(picture[::_SAMPLED, ::_SAMPLED].reshape(-1, 3))
        video_frame = av.VideoFrame.from_ndarray(picture, format='rgb24')
        video_frame.pts = self.frames
        with writing(self._part):
            self._container.mux(self._stream.encode(video_frame))
        self.frames += 1

    def close(self) -> None:
        """Complete the file; may be called twice. OSError if it cannot be written."""
        if not self._closed:
            with writing(self._part):
                self._container.mux(self._stream.encode(None))
                self._container.close()
            self._closed = True
            with open(self._part, 'rb+') as file:
                os.fsync(file.fileno())
            os.replace(self._part, self.path)
            self.info['pixels'] = np.concatenate(self._pixels)

    def discard(self) -> None:
        """Remove the file, unless it is complete."""
        if not self._closed:
            with suppress(OSError), writing(self._part):  # its end cannot be written, and need not be
                self._container.close()
            self._closed = True
        self._part.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Context in which errors of PyAV are an OSError that names the file."""
    from av.error import FFmpegError

    try:
        yield
    except FFmpegError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def check_codec(codec: str) -> None:
    """Raise ValueError if videos cannot be encoded with a codec, ImportError without PyAV; both say what to do."""
    try:
        import av
        from av.codec import codecs_available
    except ImportError as error:
        raise ImportError(f'videos of a dataset need PyAV ({error}): {install_hint("record")}') from error
    if codec not in codecs_available:
        raise ValueError(
            f'this PyAV ({av.__version__}) has no encoder {codec!r}: install one of the wheels of PyPI '
            '(pip install --force-reinstall av), or record with --format hdf5, which keeps pictures as arrays'
        )
