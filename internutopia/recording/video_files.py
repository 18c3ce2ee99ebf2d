"""Video files: those of episodes, which are read, and those of a dataset, made of them without encoding them anew."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.recording.streams import writing
from internutopia.util.imports import install_hint

ADVICE = 'take it from a copy; `internutopia replay FOLDER --out NEW` takes all pictures anew, from the states'
"""Advice for a file of pictures that is gone or damaged."""


def read_video(path: Path, count: int, frames: range, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Read pictures of a video, `(len(frames), height, width, 3)`.

    Args:
        path: the video.
        count: frames that it must have.
        frames: the numbers of those that are wanted.
        shape: of a picture.

    Raises:
        ValueError: the video is damaged.
        ImportError: PyAV is missing.
        OSError: the file cannot be read.
    """
    try:
        import av
    except ImportError as error:
        raise ImportError(f'videos of a dataset need PyAV ({error}): {install_hint("record")}') from error
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
    with writing(out), av.open(os.fspath(out), 'w', format='mp4') as target:
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
    except (InvalidDataError, EOFError, IndexError) as error:  # the last one: it has no pictures
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
