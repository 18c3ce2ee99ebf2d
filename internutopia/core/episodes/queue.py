"""Episode queue, and the record of an ended episode, a line of a results file.

Episodes are numbered from 0 in the order in which they are taken; with `episode_order='once'` the number is the index
in `Config.task_configs`. Episodes that an earlier run has done are left out; the others keep their numbers. The queue
keeps snapshots: what the caller does with its task configs later, or what an episode does with its own copy, changes
nothing here.

A line is the record, `config`, the digest of the config that the episode ran with (`config_digest.py`), and `crc`, a
checksum of all of this but `env_id`: the same result has the same checksum, wherever it was computed.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import pickle
import secrets
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, StrictBool, StrictInt, TypeAdapter, ValidationError

from internutopia.config.task import TaskCfg

EpisodeOrder = Literal['once', 'cycle', 'shuffle']


@dataclass(frozen=True)
class Episode:
    """One run of a task config: `id` counts episodes, `task_index` is the index in `Config.task_configs`."""

    id: int
    task_index: int
    snapshot: Callable[[], TaskCfg]

    @property
    def task_name(self) -> str:
        """Name of the task while it runs: key of `runner.current_tasks`."""
        return str(self.id)


class EpisodeQueue:
    """Queue of task configs in the order in which they are run.

    Attributes:
        seed: seed of everything random in the episodes; drawn at random if none was given.
        done: ids of episodes that are left out.
    """

    def __init__(
        self,
        task_configs: Sequence[TaskCfg],
        order: EpisodeOrder = 'once',
        seed: int | None = None,
    ):
        self.seed: int = secrets.randbits(64) if seed is None else seed
        snapshots = {id(config): _snapshot(config) for config in {id(each): each for each in task_configs}.values()}
        self._snapshots = [snapshots[id(config)] for config in task_configs]  # one of a task that is repeated
        self._order: EpisodeOrder = order
        self.done: Collection[int] = ()
        self._returned: deque[Episode] = deque()
        self._upcoming: Episode | None = None
        self._episodes = self._in_order()

    def skip(self, done: Collection[int]) -> None:
        """Leave out the episodes with these ids; must be called before the first one is taken."""
        self.done = done

    def restart(self, seed: int) -> None:
        """Restart an endless order, `'shuffle'` from a seed; with `'once'` no episode is run a second time.

        What is random in episodes starts from the seed in any order. Episodes are numbered from 0 again.
        """
        self.seed = seed
        if self._order != 'once':
            self._episodes = self._in_order()
            self._upcoming = None
            self._returned.clear()

    @property
    def exhausted(self) -> bool:
        """True if no episode is left."""
        if not self._returned and self._upcoming is None:
            self._upcoming = next(self._episodes, None)
        return not self._returned and self._upcoming is None

    def take(self) -> Episode | None:
        """Take the next episode; None if there is none."""
        if self._returned:
            return self._returned.popleft()
        episode, self._upcoming = self._upcoming, None
        return next(self._episodes, None) if episode is None else episode

    def put_back(self, episodes: Iterable[Episode | None]) -> None:
        """Return episodes that could not be started to the head of the queue, in their order."""
        self._returned.extendleft(reversed([episode for episode in episodes if episode is not None]))

    def _in_order(self) -> Iterator[Episode]:
        rng, count, first = np.random.default_rng(self.seed), len(self._snapshots), 0
        while True:
            order = rng.permutation(count).tolist() if self._order == 'shuffle' else range(count)
            for episode_id, index in enumerate(order, first):
                if episode_id not in self.done:
                    yield Episode(episode_id, index, self._snapshots[index])
            first += count
            if self._order == 'once':
                return


def _snapshot(config: TaskCfg) -> Callable[[], TaskCfg]:
    """Return a function that makes deep copies of a config as it is now."""
    try:
        data = pickle.dumps(config)
        pickle.loads(data)
    except (pickle.PicklingError, AttributeError, TypeError, ImportError):
        original = copy.deepcopy(config)  # a class defined inside a function can be copied but not pickled
        return lambda: copy.deepcopy(original)
    return functools.partial(pickle.loads, data)


_Index = Annotated[StrictInt, Field(ge=0)]


@dataclass(frozen=True)
class EpisodeRecord:
    """Result of one ended episode, field by field as in the results file; see `docs/long_runs.md`."""

    __pydantic_config__ = ConfigDict(extra='forbid')

    episode_id: _Index
    task_index: _Index
    task_name: str
    task: str | None
    env_id: _Index
    steps: _Index
    terminated: StrictBool
    truncated: StrictBool
    metrics: dict[str, Any]
    error: str | None

    @classmethod
    def of(
        cls,
        episode: Episode,
        task: str | None,
        env_id: int,
        steps: int,
        terminated: bool,
        truncated: bool,
        metrics: dict[str, Any],
        error: str | None,
    ) -> EpisodeRecord:
        """Create the record of an episode that ended in an env, for a task type."""
        name = episode.task_name
        return cls(episode.id, episode.task_index, name, task, env_id, steps, terminated, truncated, metrics, error)


@dataclass(frozen=True)
class ResultLine(EpisodeRecord):
    """Line of a results file. Older versions wrote neither digest nor checksum."""

    config: str | None = None
    crc: str | None = None


def to_line(record: EpisodeRecord, config_digest: str) -> bytes:
    """Return the line of a record, with its newline."""
    values = {**plain(vars(record)), 'config': config_digest}
    return json.dumps({**values, 'crc': _checksum(values)}, allow_nan=False).encode() + b'\n'


def from_values(values: Any) -> ResultLine:
    """Create the result line from parsed JSON. ValueError if it is not the record of an ended episode, as written."""
    if not isinstance(values, dict):
        raise ValueError(f'expected a result, as a JSON object, got {str(values)[:80]}')
    try:
        result = _LINES.validate_python(values)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        got = '' if fault['type'] == 'missing' else f', got {str(fault["input"])[:80]}'
        raise ValueError(f'{".".join(map(str, fault["loc"]))!r}: {fault["msg"]}{got}') from None
    if not (result.terminated or result.truncated):
        raise ValueError("the episode has not ended: neither 'terminated' nor 'truncated' is true")
    if (result.crc is None) != (result.config is None):
        raise ValueError(f'{"crc" if result.crc is None else "config"!r}: Field required')
    if result.crc is not None and result.crc != _checksum(values):
        raise ValueError(f"'crc' is {result.crc!r}, that of what the line says is {_checksum(values)!r}")
    return result


def plain(value: Any) -> Any:
    """Convert a value to plain JSON: numpy values become numbers and lists, numbers that are not finite null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return str(value)


def is_finite(value: Any) -> bool:
    """Return True if all numbers in a value are, which is nested like that of `plain`."""
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list | tuple | set):
        return all(map(is_finite, value))
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in 'fc':
        return bool(np.isfinite(value).all())
    return not isinstance(value, float) or math.isfinite(value)


_LINES = TypeAdapter(ResultLine)


def _checksum(values: Mapping[str, Any]) -> str:
    """Return the CRC-32 of a line's values, without the id of the env that the episode ran in."""
    text = json.dumps({name: value for name, value in values.items() if name not in ('env_id', 'crc')})
    return f'{zlib.crc32(text.encode()):08x}'
