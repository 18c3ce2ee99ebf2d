"""Episode writer: an episode that is under way, and the file (`episode_file.py`) that it becomes."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.recording.episode_file import ACTIONS, OBSERVATIONS, PIXELS, SUFFIX, RecordedEpisode
from internutopia.recording.leaves import Leaves, is_picture
from internutopia.recording.step_buffer import Block, Rows, StateTrack
from internutopia.recording.streams import CODEC, FrameStream, RawStream, VideoStream
from internutopia.util.log import warn_once
from internutopia.util.replacing import replacing

# columns of blocks
REWARD, FRAME, ACTION = 'reward', 'frame', 'action'
OBSERVATION, STATE = 'observation/', 'state/'  # with names behind


class EpisodeWriter:
    """An episode that is under way.

    Args:
        path: the file that it becomes.
        facts: facts about it at its start, as JSON.
        fps: frames per second.
        video: whether colour images become videos, not arrays.
        codec: of videos.
    """

    def __init__(self, path: Path, facts: Mapping[str, Any], fps: int, video: bool, codec: str = CODEC):
        self.path = path
        self.facts = dict(facts)
        self.steps = 0
        self.states = StateTrack()
        self._fps, self._video, self._codec = fps, video, codec
        self._rewards: list[NDArray[np.float64]] = []
        self._frames: list[NDArray[np.intp]] = []
        self._rows: dict[str, list[NDArray[Any]]] = {}
        self._streams: dict[str, FrameStream] = {}
        self._left_out: dict[str, str] = {}
        self._action_rows: list[NDArray[Any]] = []
        self._actions: list[int] = []  # index of each step's in the values
        self._action_values: dict[str, int] = {}
        self._actions_complete = True

    def act(self, step: int, action: Any) -> None:
        """Take the actions of a step, if they are not an array; again if that is tried again."""
        del self._actions[step:]
        try:
            text = _ENCODER.encode(action)
        except (TypeError, ValueError) as error:
            warn_once('actions cannot be recorded (%s); the states are', error)
            text, self._actions_complete = 'null', False
        self._actions.append(self._action_values.setdefault(text, len(self._action_values)))

    def picture(self, leaf: str, frame: int, picture: NDArray[Any]) -> Callable[[], None] | None:
        """Take a large array of the observation at a frame: returns what writes it, None if it is left out.

        That may be called in any thread. OSError, of both, if it cannot be written.
        """
        if leaf in self._left_out:
            return None
        picture = picture[..., :3] if is_picture(picture) else picture  # without alpha
        if leaf not in self._streams:
            if frame:
                return self._leave_out(leaf, 'it is not in every observation')
            self._streams[leaf] = self._open(leaf, picture)
        stream = self._streams[leaf]
        shape = tuple(stream.info['shape'])
        if shape != picture.shape:
            return self._leave_out_reshaped(leaf, shape, picture.shape)
        if stream.frames > frame:
            return None  # of a step that is tried again
        return functools.partial(stream.add, picture)

    def add(self, block: Block) -> None:
        """Take the next steps."""
        first, self.steps = self.steps, self.steps + block.steps
        if not block.steps:
            return
        columns = block.columns
        self._rewards.append(columns[REWARD][0].values)
        frames = columns[FRAME][0].steps if FRAME in columns else np.zeros(0, np.intp)
        for name, parts in columns.items():
            if name.startswith(STATE):
                for part in parts:  # a step leads to the state behind it
                    self.states.add(name.removeprefix(STATE), Rows(part.steps + first + 1, part.values))
            elif name.startswith(OBSERVATION):
                self._observe(name.removeprefix(OBSERVATION), parts, frames)
        self._action_rows += [part.values for part in columns.get(ACTION, ())]
        self._frames.append(frames + first)

    def save(self, ending: Mapping[str, Any]) -> None:
        """Write the file. OSError if that fails: what was recorded is kept, and it can be called again."""
        frame_steps = np.concatenate(self._frames, dtype=np.int32, casting='same_kind')
        rows = {leaf: np.concatenate(parts) for leaf, parts in self._rows.items()}
        counts = {leaf: len(each) for leaf, each in rows.items()}
        counts |= {leaf: stream.frames for leaf, stream in self._streams.items()}
        for leaf in [leaf for leaf, count in counts.items() if count != len(frame_steps)]:
            self._leave_out(leaf, 'it is not in every observation')
        try:
            streams = self._close_streams()
            facts = {
                **self.facts,
                **ending,
                'steps': self.steps,
                'streams': streams,
                'left_out': self._left_out,
                'actions': {
                    'values': list(map(json.loads, self._action_values)),
                    'index': self._actions[: self.steps],
                    'complete': self._actions_complete,
                },
            }
            arrays = {
                **self.states.arrays(self.steps + 1),
                **{f'{OBSERVATIONS}{leaf}': rows[leaf] for leaf in self._rows},
                **self._pixels(),
                **({ACTIONS: np.concatenate(self._action_rows)} if self._action_rows else {}),
                'rewards': np.concatenate(self._rewards),
                'frame_steps': frame_steps,
                'facts': _packed(facts),
            }
            _write(self.path, arrays)
        except OSError as error:
            if error.filename is None:
                error.filename = str(self.path)
            raise

    def save_copy(self, episode: RecordedEpisode, pictures: Callable[[int], Leaves]) -> None:
        """Write an episode that was recorded once more, all of it the same except for its images. OSError.

        `pictures` gives them by leaf, for the step that is made next at a frame.
        """
        arrays = {name: rows for name, rows in episode.arrays().items() if not name.startswith(PIXELS)}
        for frame, step in enumerate(episode.frame_steps.tolist()):
            for leaf, picture in pictures(step).items():
                if (rows := arrays.get(f'{OBSERVATIONS}{leaf}')) is not None:
                    rows[frame] = picture  # a small one
                elif (write := self.picture(leaf, frame, picture)) is not None:
                    write()
        facts = {**episode.facts, 'streams': self._close_streams()}
        _write(self.path, {**arrays, **self._pixels(), 'facts': _packed(facts)})

    def discard(self) -> None:
        """Remove what was written of it."""
        for stream in self._streams.values():
            stream.discard()
        self._streams.clear()

    def _observe(self, leaf: str, parts: list[Rows], frames: NDArray[np.intp]) -> None:
        """Take a leaf of the observation at frames of a block."""
        if leaf in self._left_out:
            return
        own = self._rows.setdefault(leaf, [])
        shapes = list(dict.fromkeys(rows.shape[1:] for rows in (*own[-1:], *(part.values for part in parts))))
        if len(shapes) > 1:
            return self._leave_out_reshaped(leaf, *shapes[:2])
        steps = np.concatenate([part.steps for part in parts])
        order = np.argsort(steps)
        own.append(np.concatenate([part.values for part in parts])[order])
        if not np.array_equal(steps[order], frames):
            self._leave_out(leaf, 'it is not in every observation')

    def _open(self, leaf: str, picture: NDArray[Any]) -> FrameStream:
        stem = f'{self.path.name.removesuffix(SUFFIX)}.{leaf.replace("/", ".")}'
        if is_picture(picture) and self._video:
            return VideoStream(self.path.with_name(f'{stem}.mp4'), picture, self._fps, self._codec)
        return RawStream(self.path.with_name(f'{stem}.raw'), picture)

    def _leave_out_reshaped(self, leaf: str, old: tuple[int, ...], new: tuple[int, ...]) -> None:
        reason = f'its shape changes, {old} to {new}'
        warn_once('observation %r is not recorded: %s', leaf, reason)
        self._leave_out(leaf, reason)

    def _leave_out(self, leaf: str, reason: str) -> None:
        self._left_out[leaf] = reason
        self._rows.pop(leaf, None)
        if leaf in self._streams:
            self._streams.pop(leaf).discard()

    def _close_streams(self) -> dict[str, dict[str, Any]]:
        """Complete the files of images; returns facts about each, by leaf."""
        for stream in self._streams.values():
            stream.close()
        return {
            leaf: {name: value for name, value in stream.info.items() if name != 'pixels'} | {'file': stream.path.name}
            for leaf, stream in self._streams.items()
        }

    def _pixels(self) -> dict[str, NDArray[Any]]:
        """Return samples of the colours of images, by the names that they have in the file."""
        return {
            f'{PIXELS}{leaf}': stream.info['pixels']
            for leaf, stream in self._streams.items()
            if 'pixels' in stream.info
        }


def _packed(facts: Mapping[str, Any]) -> NDArray[np.uint8]:
    return np.frombuffer(json.dumps(facts).encode(), np.uint8)


def _as_list(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f'{type(value).__name__} is no number')


_ENCODER = json.JSONEncoder(default=_as_list)


def _write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file atomically."""
    with replacing(path) as part, open(part, 'wb') as file:
        np.savez(file, **dict(arrays))  # pyright: ignore[reportArgumentType]
        file.flush()
        os.fsync(file.fileno())
