"""Episode files: all that was recorded of one episode, the one file from which every format is made.

`episode-000003.npz` holds arrays and, as JSON, facts; pictures are in files beside it. They are complete when it is
there: it gets its name last, with everything on the disk.

Arrays, for `steps` steps of which `frames` are frames of the dataset:

- `states/...`, `state_steps/...`: physics before the first step and after each (`states.py`);
- `rewards`: `(steps,)`;
- `actions`: `(steps, k)`, where they are arrays; others are among the facts, each value once;
- `frame_steps`: `(frames,)`, the step that is made next when a frame is taken;
- `observations/<leaf>`: `(frames, ...)`, what the program saw; `<leaf>` is the path in the nested observation;
- `pixels/<leaf>`: `(k, 3)`, a sample of the colours of pictures, for statistics.
"""

from __future__ import annotations

import json
import zipfile
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.core.util.log import warn_once
from internutopia.recording.leaves import Leaves, numeric_leaves
from internutopia.recording.states import States

SUFFIX = '.npz'
OBSERVATIONS, PIXELS, ACTIONS = 'observations/', 'pixels/', 'actions'


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
        if ACTIONS in self._arrays.files:
            return self._array(ACTIONS).tolist()
        values, index = self.facts['actions']['values'], self.facts['actions']['index']
        return [values[each] for each in index]

    @cached_property
    def observations(self) -> Leaves:
        """What the program saw at each frame, `(frames, ...)` by leaf, pictures apart."""
        names = [name for name in self._arrays.files if name.startswith(OBSERVATIONS)]
        return {name.removeprefix(OBSERVATIONS): self._array(name) for name in names}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays of the file, anew from it."""
        return {name: self._array(name) for name in self._arrays.files}

    @property
    def streams(self) -> dict[str, dict[str, Any]]:
        """Pictures, by leaf: `kind` (`'video'` or `'raw'`), `shape` and `dtype` of one, `file`."""
        return self.facts['streams']

    def raw_frames(self, leaf: str) -> NDArray[Any]:
        """Pictures that were kept as arrays, `(frames, ...)`. ValueError if their file is damaged."""
        stream, path = self.streams[leaf], self.stream_path(leaf)
        shape = (len(self.frame_steps), *stream['shape'])
        size = int(np.prod(shape)) * np.dtype(stream['dtype']).itemsize
        if path.stat().st_size != size:
            raise ValueError(f'{path} is damaged: expected {size} bytes; delete {self.path}, and record it again')
        return np.memmap(path, stream['dtype'], 'r', shape=shape)

    def stream_path(self, leaf: str) -> Path:
        """The file of pictures. ValueError if it is not there."""
        path = self.path.with_name(self.streams[leaf]['file'])
        if not path.is_file():
            raise ValueError(f'{path} is missing: delete {self.path}, and record its episode again')
        return path

    def pixels(self, leaf: str) -> NDArray[np.uint8]:
        """A sample of the colours of pictures, `(k, 3)`."""
        return self._array(f'{PIXELS}{leaf}')

    def action_rows(self) -> Leaves:
        """What was commanded at each frame as numbers, `(frames, k)` by `robot/controller`.

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
