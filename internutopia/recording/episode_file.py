"""Episode files: all that was recorded of one episode, the one file from which every format is made.

`episode-000003.npz` holds arrays and, as JSON, facts; pictures are in files beside it. They are complete when it is
there: it gets its name last, with everything on the disk.

Arrays, for `steps` steps of which `frames` are frames of the dataset:

- `states/...`, `state_steps/...`: physics before the first step and after each (`states.py`);
- `rewards`: `(steps,)`;
- `frame_steps`: `(frames,)`, the step that is made next when a frame is taken;
- `observations/<leaf>`: `(frames, ...)`, what the program saw; `<leaf>` is the path in the nested observation;
- `pixels/<leaf>`: `(k, 3)`, a sample of the colours of pictures, for statistics.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.util.log import warn_once
from internutopia.core.world.base import PhysicsState
from internutopia.recording.leaves import Leaves, numeric_leaves
from internutopia.recording.states import States, StateTrack
from internutopia.recording.streams import CODEC, PART, FrameStream, RawStream, VideoStream

SUFFIX = '.npz'
_OBSERVATIONS, _PIXELS = 'observations/', 'pixels/'
_LARGE = 1024  # numbers in an array that goes to a file while the episode runs
_ROUNDING = 1e-6  # of a step


class EpisodeWriter:
    """An episode that is under way.

    Args:
        path: the file that it becomes.
        facts: what is known of it at its start, as JSON; those of a `RecordedEpisode` to record it once more.
        state: the physics before its first step.
        step_rate: steps per second.
        fps: frames per second, `step_rate` at most.
        video: whether colour pictures become videos, not arrays.
        codec: of videos.
    """

    def __init__(
        self,
        path: Path,
        facts: Mapping[str, Any],
        state: PhysicsState,
        step_rate: float,
        fps: int,
        video: bool,
        codec: str = CODEC,
    ):
        self.path = path
        self.facts = dict(facts)
        self._steps_per_frame = step_rate / fps
        self._fps, self._video, self._codec = fps, video, codec
        self._states = StateTrack()
        self._states.add(state)
        self._rewards: list[float] = []
        self._frame_steps: list[int] = []
        self._rows: dict[str, list[NDArray[Any]]] = {}
        self._streams: dict[str, FrameStream] = {}
        self._left_out: dict[str, str] = dict(facts.get('left_out', {}))
        self._actions: list[int] = []  # index of each step's in the values
        self._action_values: dict[str, int] = {}
        self._actions_complete: bool = facts.get('actions', {}).get('complete', True)

    @property
    def steps(self) -> int:
        """Number of steps that were made."""
        return len(self._rewards)

    def observe(self, observation: Any) -> None:
        """Take what the program sees before the next step, if a frame is due. OSError if it cannot be written."""
        frame = len(self._frame_steps)
        if self.steps + _ROUNDING < frame * self._steps_per_frame:
            return
        leaves = numeric_leaves(observation)
        for leaf in leaves:
            if leaf not in self._left_out:
                self._add(leaf, leaves[leaf], frame)
        self._frame_steps.append(self.steps)

    def act(self, action: Any) -> None:
        """Take what the program commands in the next step."""
        try:
            text = json.dumps(action, default=_as_list)
        except (TypeError, ValueError) as error:
            warn_once('actions cannot be recorded (%s); the states are', error)
            text, self._actions_complete = 'null', False
        self._actions.append(self._action_values.setdefault(text, len(self._action_values)))

    def stepped(self, state: PhysicsState, reward: float) -> None:
        """Take what a step came to."""
        self._states.add(state)
        self._rewards.append(reward)

    def save(self, ending: Mapping[str, Any]) -> None:
        """Write the file. OSError if that fails: what was recorded is kept, and it can be called again."""
        complete = {leaf: rows for leaf, rows in self._rows.items() if len(rows) == len(self._frame_steps)}
        for leaf in self._rows.keys() - complete.keys():
            self._leave_out(leaf, 'it is not in every observation')
        try:
            for stream in self._streams.values():
                stream.close()
            streams = {leaf: self._stream_facts(stream) for leaf, stream in self._streams.items()}
            pixels = {f'{_PIXELS}{leaf}': stream.info['pixels']
                      for leaf, stream in self._streams.items() if 'pixels' in stream.info}  # fmt: skip
            facts = {
                **self.facts,
                **ending,
                'steps': self.steps,
                'streams': streams,
                'left_out': self._left_out,
                'actions': {
                    'values': list(map(json.loads, self._action_values)),
                    'index': self._actions,
                    'complete': self._actions_complete,
                },
            }
            arrays = {
                **self._states.arrays(),
                **{f'{_OBSERVATIONS}{leaf}': np.stack(rows) for leaf, rows in complete.items()},
                **pixels,
                'rewards': np.array(self._rewards),
                'frame_steps': np.array(self._frame_steps, np.int32),
                'facts': np.frombuffer(json.dumps(facts).encode(), np.uint8),
            }
            _write(self.path, arrays)
        except OSError as error:
            if error.filename is None:
                error.filename = str(self.path)
            raise

    def discard(self) -> None:
        """Remove what was written of it."""
        for stream in self._streams.values():
            stream.discard()
        self._streams.clear()

    def _add(self, leaf: str, value: NDArray[Any], frame: int) -> None:
        """Take a leaf of the observation at a frame."""
        if leaf not in self._streams and leaf not in self._rows:
            if frame:
                return self._leave_out(leaf, 'it is not in every observation')
            if value.ndim < 2 or value.size < _LARGE:
                self._rows[leaf] = []
            else:
                self._streams[leaf] = self._open(leaf, value)
        if leaf in self._rows:
            rows = self._rows[leaf]
            if rows and rows[0].shape != value.shape:
                return self._leave_out(leaf, f'its shape changes, {rows[0].shape} to {value.shape}')
            return rows.append(value)
        stream = self._streams[leaf]
        shape = tuple(stream.info['shape'])
        colours = _is_picture(value)
        if shape != (value[..., :3].shape if colours else value.shape):
            return self._leave_out(leaf, f'its shape changes, {shape} to {value.shape}')
        stream.add(value[..., :3] if colours else value)

    def _open(self, leaf: str, value: NDArray[Any]) -> FrameStream:
        stem = f'{self.path.name.removesuffix(SUFFIX)}.{leaf.replace("/", ".")}'
        if _is_picture(value) and self._video:
            return VideoStream(self.path.with_name(f'{stem}.mp4'), value, self._fps, self._codec)
        frame = value[..., :3] if _is_picture(value) else value
        return RawStream(self.path.with_name(f'{stem}.raw'), frame)

    def _leave_out(self, leaf: str, reason: str) -> None:
        warn_once('observation %r is not recorded: %s', leaf, reason)
        self._left_out[leaf] = reason
        self._rows.pop(leaf, None)
        if leaf in self._streams:
            self._streams.pop(leaf).discard()

    @staticmethod
    def _stream_facts(stream: FrameStream) -> dict[str, Any]:
        info = {name: value for name, value in stream.info.items() if name != 'pixels'}
        return {**info, 'file': stream.path.name}


class RecordedEpisode:
    """An episode that was recorded.

    Attributes:
        path: its file.
        facts: what is known of it: `episode_id`, `task_index`, `env_id`, `task` (in words), `seed`,
            `noise_key`, `joints` (names by robot), `steps`, `terminated`, `truncated`, `success`, `metrics`, `error`.

    Raises:
        FileNotFoundError: there is none.
        ValueError: the file is damaged.
    """

    def __init__(self, path: Path):
        self.path = path
        try:
            self._arrays = np.load(path)
            self.facts: dict[str, Any] = json.loads(self._arrays['facts'].tobytes())
        except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
            raise ValueError(f'{path} is damaged ({error}): delete it, and record its episode again') from None

    @property
    def steps(self) -> int:
        """Number of steps."""
        return self.facts['steps']

    @cached_property
    def states(self) -> States:
        """The physics before its first step and after each."""
        names = [name for name in self._arrays.files if name.startswith('state')]
        return States({name: self._array(name) for name in names})

    @cached_property
    def rewards(self) -> NDArray[np.float64]:
        """Of each step, `(steps,)`."""
        return self._array('rewards')

    @cached_property
    def frame_steps(self) -> NDArray[np.int32]:
        """The step that is made next at each frame, `(frames,)`."""
        return self._array('frame_steps')

    @cached_property
    def actions(self) -> list[Any]:
        """What was commanded in each step, nested as the program gave it; arrays are lists."""
        values, index = self.facts['actions']['values'], self.facts['actions']['index']
        return [values[each] for each in index]

    @cached_property
    def observations(self) -> Leaves:
        """What the program saw at each frame, `(frames, ...)` by leaf, pictures apart."""
        names = [name for name in self._arrays.files if name.startswith(_OBSERVATIONS)]
        return {name.removeprefix(_OBSERVATIONS): self._array(name) for name in names}

    @property
    def streams(self) -> dict[str, dict[str, Any]]:
        """Pictures, by leaf: `kind` (`'video'` or `'raw'`), `shape` and `dtype` of one, `file`."""
        return self.facts['streams']

    def raw_frames(self, leaf: str) -> NDArray[Any]:
        """Pictures that were kept as arrays, `(frames, ...)`. ValueError if their file is damaged."""
        stream, path = self.streams[leaf], self.stream_path(leaf)
        shape = (len(self.frame_steps), *stream['shape'])
        size = int(np.prod(shape)) * np.dtype(stream['dtype']).itemsize
        if not path.is_file() or path.stat().st_size != size:
            raise ValueError(f'{path} is damaged: expected {size} bytes; delete {self.path}, and record it again')
        return np.memmap(path, stream['dtype'], 'r', shape=shape)

    def stream_path(self, leaf: str) -> Path:
        """The file of pictures."""
        return self.path.with_name(self.streams[leaf]['file'])

    def pixels(self, leaf: str) -> NDArray[np.uint8]:
        """A sample of the colours of pictures, `(k, 3)`."""
        return self._array(f'{_PIXELS}{leaf}')

    def action_rows(self) -> Leaves:
        """What was commanded at each frame as numbers, `(frames, k)` by `robot/controller`.

        Where a step commands nothing of it, what was commanded last; zero before the first command. Commands that are
        no numbers, or whose number changes, are left out.
        """
        leaves = [numeric_leaves(value) for value in self.facts['actions']['values']]
        sizes: dict[str, set[int]] = {}
        for each in leaves:
            for leaf, value in each.items():
                sizes.setdefault(leaf, set()).add(value.size)
        rows: Leaves = {}
        for leaf, (size, *others) in sizes.items():
            if others:
                warn_once('commands of %r are no column: their number changes', leaf)
                continue
            steps = np.zeros((self.steps, size), np.float32)
            held = np.zeros(size, np.float32)
            for step, index in enumerate(self.facts['actions']['index']):
                if leaf in leaves[index]:
                    held = leaves[index][leaf].astype(np.float32).ravel()
                steps[step] = held
            rows[leaf] = steps[self.frame_steps]
        return rows

    def _array(self, name: str) -> NDArray[Any]:
        try:
            return self._arrays[name]
        except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
            raise ValueError(f'{self.path} is damaged ({error}): delete it, and record its episode again') from None


def _is_picture(value: NDArray[Any]) -> bool:
    return value.dtype == np.uint8 and value.ndim == 3 and value.shape[2] in (3, 4)


def _as_list(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f'{type(value).__name__} is no number')


def _write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write a file that is there as a whole or not at all."""
    part = path.with_name(path.name + PART)
    try:
        with open(part, 'wb') as file:
            np.savez(file, **dict(arrays))  # pyright: ignore[reportArgumentType]
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
