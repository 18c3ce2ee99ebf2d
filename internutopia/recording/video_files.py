"""Video files of a dataset: the videos of episodes one after the other, without encoding them anew."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from internutopia.recording.streams import writing


def concatenate(videos: Sequence[tuple[Path, int]], fps: int, out: Path) -> None:
    """Write videos, each with its number of frames, into one file of `fps` frames per second.

    Raises:
        ValueError: a video is damaged; it is named.
        OSError: the file cannot be written.
    """
    import av
    from av.error import FFmpegError

    out.parent.mkdir(parents=True, exist_ok=True)
    with writing(out), av.open(os.fspath(out), 'w', format='mp4') as target:
        stream: Any = None
        start = 0  # frames
        for path, frames in videos:
            found = 0
            try:
                source = av.open(os.fspath(path))
            except (FFmpegError, OSError) as error:
                raise ValueError(f'{path} is damaged ({error}): delete its episode, and record it again') from None
            with source:
                own = source.streams.video[0]
                if stream is None:
                    stream = target.add_stream_from_template(own)
                assert own.time_base is not None
                ticks = round(1.0 / (fps * own.time_base))  # of a frame
                for packet in source.demux(own):
                    if packet.pts is None or packet.dts is None:
                        continue  # the end
                    packet.pts += start * ticks
                    packet.dts += start * ticks
                    packet.stream = stream
                    target.mux(packet)
                    found += 1
            if found != frames:
                raise ValueError(
                    f'{path} is damaged: {found} frames, not {frames}; delete its episode, and record it again'
                )
            start += frames


def video_facts(path: Path, fps: int) -> dict[str, Any]:
    """What LeRobot's tables say of a video."""
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
