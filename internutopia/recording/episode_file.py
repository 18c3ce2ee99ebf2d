"""Episode files: all that was recorded of one episode, the one file from which every format is made.

`episode-000003.npz` holds arrays and, as JSON, facts; images are in files of the same folder. They are complete when
it is there: it gets its name last, with everything on the disk.

Arrays, for `steps` steps of which `frames` are frames of the dataset:

- `states/...`, `state_steps/...`: physics before the first step and after each (`step_buffer.py`);
- `rewards`: `(steps,)`;
- `actions`: `(steps, k)`, where they are arrays; others are among the facts, each value once;
- `frame_steps`: `(frames,)`, the step that is made next when a frame is taken;
- `observations/<leaf>`: `(frames, ...)`, what the program saw; `<leaf>` is the path in the nested observation;
- `pixels/<leaf>`: `(k, 3)`, a sample of the colours of images, for statistics.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.recording.leaves import Leaves, numeric_leaves
from internutopia.recording.step_buffer import States
from internutopia.recording.streams import ADVICE, read_video
from internutopia.util import did_you_mean
from internutopia.util.log import warn_once

SUFFIX = '.npz'
OBSERVATIONS, PIXELS, ACTIONS = 'observations/', 'pixels/', 'actions'
_DAMAGED = zipfile.BadZipFile, KeyError, ValueError, EOFError


class RecordedEpisode:
    """An episode that was recorded.

    Attributes:
        path: its file.
        facts: facts about it: `episode_id`, `task_index`, `env_id`, `task` (in words), `seed`,
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
        except _DAMAGED as error:
            raise _damaged(path, error) from None

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
        """Rewards of each step, `(steps,)`."""
        return self._array('rewards')

    @cached_property
    def frame_steps(self) -> NDArray[np.int32]:
        """The step that is made next at each frame, `(frames,)`."""
        return self._array('frame_steps')

    @cached_property
    def actions(self) -> list[Any]:
        """Actions of each step, nested as the program passed them; arrays are lists."""
        if ACTIONS in self._arrays.files:
            return self._array(ACTIONS).tolist()
        values, index = self.facts['actions']['values'], self.facts['actions']['index']
        return [values[each] for each in index]

    @cached_property
    def observations(self) -> Mapping[str, NDArray[Any]]:
        """Observations at each frame, `(frames, ...)` by leaf; of images, see `pictures`."""
        names = [name for name in self._arrays.files if name.startswith(OBSERVATIONS)]
        numbers = {name.removeprefix(OBSERVATIONS): self._array(name) for name in names}
        return _Observations(numbers, self.streams, self.pictures)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Read all arrays of the file."""
        return {name: self._array(name) for name in self._arrays.files}

    @property
    def streams(self) -> dict[str, dict[str, Any]]:
        """Images, by leaf: `kind` (`'video'` or `'raw'`), `shape` and `dtype` of one, `file`."""
        return self.facts['streams']

    def pictures(self, leaf: str, frames: slice = slice(None)) -> NDArray[Any]:
        """Return images of a camera or another sensor, `(frames, height, width, ...)`, by the leaf in `observations`.

        Colours in a video are uint8, and nearly what the program saw, as videos are lossy. All else (depth, and colours
        with `format='hdf5'`) is what it saw, in memory that is mapped from the file.

        Args:
            leaf: such as `jetbot/sensors/camera/rgba`.
            frames: the frames of these numbers; a video of all of them may not fit into memory.

        Raises:
            KeyError: there are no images of that name.
            ValueError: their file is missing or damaged.
            ImportError: they are a video, and PyAV is missing.
        """
        if leaf not in self.streams:
            raise KeyError(f'{self.path} has no images {leaf!r}; {did_you_mean(leaf, self.streams)}')
        stream = self.streams[leaf]
        if stream['kind'] == 'raw':
            return self.raw_frames(leaf)[frames]
        count = len(self.frame_steps)
        return read_video(self.stream_path(leaf), count, range(count)[frames], tuple(stream['shape']))

    def raw_frames(self, leaf: str) -> NDArray[Any]:
        """Return images kept as arrays, `(frames, ...)`. ValueError if they were not, or their file is damaged."""
        stream, path = self.streams[leaf], self.stream_path(leaf)
        if stream['kind'] != 'raw':
            raise ValueError(f'{path} is a {stream["kind"]}, not arrays: `pictures({leaf!r})` reads it')
        shape = (len(self.frame_steps), *stream['shape'])
        size, found = int(np.prod(shape)) * np.dtype(stream['dtype']).itemsize, path.stat().st_size
        if found != size:
            raise ValueError(f'{path} is damaged, it has {found} bytes instead of {size}: {ADVICE}')
        return np.memmap(path, stream['dtype'], 'r', shape=shape)

    def stream_path(self, leaf: str) -> Path:
        """Return the file of images. ValueError if it is not there."""
        path = self.path.with_name(self.streams[leaf]['file'])
        if not path.is_file():
            raise ValueError(f'{path} is missing: {ADVICE}')
        return path

    def pixels(self, leaf: str) -> NDArray[np.uint8]:
        """Return a sample of the colours of images, `(k, 3)`."""
        return self._array(f'{PIXELS}{leaf}')

    def action_rows(self) -> Leaves:
        """Return the actions at each frame as numbers, `(frames, k)` by `robot/controller`.

        Where a step commands nothing of it, what was commanded last; zero before the first command. Commands that are
        no numbers, or whose number changes, are left out.
        """
        if ACTIONS in self._arrays.files:
            return {'': self._array(ACTIONS)[self.frame_steps]}
        leaves = [numeric_leaves(value) for value in self.facts['actions']['values']]
        sizes: dict[str, set[int]] = {}
        for each in leaves:
            for leaf, value in each.items():
                sizes.setdefault(leaf, set()).add(value.size)
        rows: Leaves = {}
        for leaf, (size, *others) in sizes.items():
            if others:
                warn_once('commands of %r are left out: their number changes', leaf)
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
        except _DAMAGED as error:
            raise _damaged(self.path, error) from None


class _Observations(Mapping[str, NDArray[Any]]):
    """Observations by leaf; images, which may not fit into memory, are read on request."""

    def __init__(self, numbers: Leaves, pictures: Mapping[str, Any], read: Callable[[str], NDArray[Any]]):
        self._numbers, self._pictures, self._read = numbers, pictures, read

    @override
    def __getitem__(self, leaf: str) -> NDArray[Any]:
        return self._numbers[leaf] if leaf in self._numbers else self._read(leaf)

    @override
    def __contains__(self, leaf: object) -> bool:
        return leaf in self._numbers or leaf in self._pictures

    @override
    def __iter__(self) -> Iterator[str]:
        yield from self._numbers
        yield from self._pictures

    @override
    def __len__(self) -> int:
        return len(self._numbers) + len(self._pictures)

    @override
    def __repr__(self) -> str:
        return f'observations {[*self]}'


def _damaged(path: Path, error: BaseException) -> ValueError:
    return ValueError(
        f'{path} is damaged ({error}): restore it from a copy, or move it elsewhere and record its episode again'
    )
