"""Image streams: frames that go to a file while an episode runs, since an episode of them does not fit into memory.

A stream writes `<name>.part`, and `<name>` when it is complete.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.util.imports import install_hint
from internutopia.util.replacing import PART

ADVICE = 'restore it from a copy; `internutopia replay FOLDER --out NEW` takes all pictures anew, from the states'
"""Advice for a file of images that is gone or damaged."""
CODEC = 'libx264'
_KEY_FRAMES = '2'  # every second one, so that single frames are found fast
_QUALITY = {'libx264': {'crf': '18', 'preset': 'veryfast', 'g': _KEY_FRAMES, 'threads': '1', 'bf': '0'}}
_SAMPLED = 16  # pixels, between two that count for statistics


class FrameStream(ABC):
    """A file of equal arrays, in sequence.

    Attributes:
        path: the complete file.
        info: shape and dtype of a frame, kind of file, statistics of pixels.
        frames: number of frames that were added.
    """

    def __init__(self, path: Path, kind: str, shape: Sequence[int], dtype: str):
        self.path = path
        self.info: dict[str, Any] = {'kind': kind, 'shape': list(shape), 'dtype': dtype}
        self.frames = 0
        self._part = path.with_name(path.name + PART)

    @abstractmethod
    def add(self, frame: NDArray[Any]) -> None:
        """Append a frame. OSError if it cannot be written."""

    @abstractmethod
    def close(self) -> None:
        """Complete the file; idempotent. OSError if it cannot be written."""

    @abstractmethod
    def discard(self) -> None:
        """Remove the file, unless it is complete."""


class RawStream(FrameStream):
    """Frames as they are, uncompressed, in C order."""

    def __init__(self, path: Path, frame: NDArray[Any]):
        super().__init__(path, 'raw', frame.shape, str(frame.dtype))
        self._file = open(self._part, 'wb')

    @override
    def add(self, frame: NDArray[Any]) -> None:
        self._file.write(frame.tobytes())
        self.frames += 1

    @override
    def close(self) -> None:
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._part, self.path)

    @override
    def discard(self) -> None:
        with suppress(OSError):  # what is buffered cannot be written, and need not be
            self._file.close()
        self._part.unlink(missing_ok=True)


class VideoStream(FrameStream):
    """Colour images as an MP4 video of `fps` frames per second."""

    def __init__(self, path: Path, frame: NDArray[np.uint8], fps: int, codec: str = CODEC):
        import av

        height, width = frame.shape[:2]
        even = height % 2 == 0 and width % 2 == 0
        super().__init__(path, 'video', (height, width, 3), 'uint8')
        self._container = av.open(os.fspath(self._part), 'w', format='mp4')
        self._stream: Any = self._container.add_stream(codec, fps, options=_QUALITY.get(codec, {'g': _KEY_FRAMES}))
        self._stream.width, self._stream.height = width, height
        self._stream.pix_fmt = 'yuv420p' if even else 'yuv444p'  # the usual one halves both sides
        self._stream.codec_context.time_base = Fraction(1, fps)
        self._pixels: list[NDArray[np.uint8]] = []
        self._closed = False

    @override
    def add(self, frame: NDArray[np.uint8]) -> None:
        import av

        picture = np.ascontiguousarray(frame)
        self._pixels.append(picture[::_SAMPLED, ::_SAMPLED].reshape(-1, 3))
        video_frame = av.VideoFrame.from_ndarray(picture, format='rgb24')
        video_frame.pts = self.frames
        with _writing(self._part):
            self._container.mux(self._stream.encode(video_frame))
        self.frames += 1

    @override
    def close(self) -> None:
        if not self._closed:
            with _writing(self._part):
                self._container.mux(self._stream.encode(None))
                self._container.close()
            self._closed = True
            with open(self._part, 'rb+') as file:
                os.fsync(file.fileno())
            os.replace(self._part, self.path)
            self.info['pixels'] = np.concatenate(self._pixels)

    @override
    def discard(self) -> None:
        if not self._closed:
            with suppress(OSError), _writing(self._part):  # its end cannot be written, and need not be
                self._container.close()
            self._closed = True
        self._part.unlink(missing_ok=True)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Context in which errors of PyAV are an OSError that names the file."""
    from av.error import FFmpegError

    try:
        yield
    except FFmpegError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def check_codec(codec: str) -> None:
    """Raise ValueError if videos cannot be encoded with a codec, ImportError without PyAV; both with a remedy."""
    av = _pyav()
    if codec not in av.codec.codecs_available:
        raise ValueError(
            f'this PyAV ({av.__version__}) has no encoder {codec!r}: install one of the wheels of PyPI '
            '(pip install --force-reinstall av), or record with --format hdf5, which stores images as arrays'
        )


def _pyav() -> Any:
    """Return the package `av`. ImportError with the command that installs it."""
    try:
        import av
    except ImportError as error:
        raise ImportError(f'videos of a dataset need PyAV ({error}): {install_hint("record")}') from error
    return av


def read_video(path: Path, count: int, frames: range, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Read images of a video, `(len(frames), height, width, 3)`.

    Args:
        path: the video.
        count: frames that it must have.
        frames: numbers of the frames to read.
        shape: of an image.

    Raises:
        ValueError: the video is damaged.
        ImportError: PyAV is missing.
        OSError: the file cannot be read.
    """
    av = _pyav()
    pictures = np.empty((len(frames), *shape), np.uint8)
    end = max(frames, default=-1) + 1
    found = 0
    with _reading(path), av.open(os.fspath(path)) as video:
        _check_count(path, video.streams.video[0].frames, count)
        for frame in video.decode(video=0):
            if found == end:
                break
            if found in frames:
                pictures[frames.index(found)] = frame.to_ndarray(format='rgb24')
            found += 1
    _check_count(path, found, end)
    return pictures


def concatenate(videos: Sequence[tuple[Path, int]], fps: int, out: Path) -> None:
    """Write videos, each with its number of frames, into one file of `fps` frames per second.

    Raises:
        ValueError: a video is damaged; it is named.
        OSError: the file cannot be written.
    """
    import av

    out.parent.mkdir(parents=True, exist_ok=True)
    with _writing(out), av.open(os.fspath(out), 'w', format='mp4') as target:
        stream: Any = None
        start = 0  # frames
        for path, frames in videos:
            found = 0
            for own, packet in _packets(path):
                if stream is None:
                    stream = target.add_stream_from_template(own)
                ticks = round(1.0 / (fps * own.time_base))  # of a frame
                packet.pts += start * ticks
                packet.dts += start * ticks
                packet.stream = stream
                target.mux(packet)
                found += 1
            _check_count(path, found, frames)
            start += frames


def _packets(path: Path) -> Iterator[tuple[Any, Any]]:
    """Return the stream of a video with each of its packets."""
    import av

    with _reading(path), av.open(os.fspath(path)) as video:
        stream = video.streams.video[0]
        for packet in video.demux(stream):
            if packet.pts is not None and packet.dts is not None:  # else the end
                yield stream, packet


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Context in which a video that is none is a ValueError, and other errors of PyAV are an OSError; both name it."""
    from av.error import EOFError, FFmpegError, InvalidDataError

    try:
        yield
    except (InvalidDataError, EOFError, IndexError) as error:  # the last one: it has no images
        raise ValueError(f'{path} is damaged ({error}): {ADVICE}') from None
    except FFmpegError as error:
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _check_count(path: Path, found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f'{path} is damaged, it has {found} frames instead of {expected}: {ADVICE}')


def video_facts(path: Path, fps: int) -> dict[str, Any]:
    """Return the entries of a video in LeRobot's tables."""
    import av

    with av.open(os.fspath(path)) as video:
        context: Any = video.streams.video[0].codec_context
        return {
            'video.height': context.height,
            'video.width': context.width,
            'video.codec': context.codec.canonical_name,
            'video.pix_fmt': context.pix_fmt,
            'video.is_depth_map': False,
            'video.fps': fps,
            'video.channels': 3,
            'has_audio': False,
        }
