"""Record of an ended episode, and its form as a line of a results file.

A line is the record, `config`, the digest of the config that the episode ran with (`config_digest.py`), and `crc`, a
checksum of all of this but `env_id`: the same result has the same checksum, wherever it was computed.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import ConfigDict, Field, StrictBool, StrictInt, TypeAdapter, ValidationError

from internutopia.core.episodes.queue import Episode

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
