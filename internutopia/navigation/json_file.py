"""JSON files of episodes, plain or compressed with gzip, and what is checked of their fields."""

from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from collections.abc import Mapping
from typing import Any

_GZIP = b'\x1f\x8b'
_LARGEST = 2 * 2**30  # bytes of text


def read_episode_list(path: str | os.PathLike[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return the list under `episodes`, and the whole content of the file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is cut off, not JSON, larger than 2 GiB, or has no list of episodes; the file is named.
    """
    values = read_json(path)
    if not isinstance(values, dict) or not isinstance(values.get('episodes'), list):
        raise ValueError(f"{path}: expected a mapping with a list 'episodes'")
    return values['episodes'], values


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file. OSError or ValueError as for `read_episode_list`."""
    with open(path, 'rb') as plain:
        compressed = plain.read(len(_GZIP)) == _GZIP
    try:
        with (gzip.open if compressed else open)(path, 'rb') as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise ValueError(f'expected at most {_LARGEST} bytes')
        return json.loads(text)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f'{path}: the gzip file is cut off or damaged: {error}') from None
    except RecursionError:
        raise ValueError(f'{path}: too many levels') from None
    except ValueError as error:
        raise ValueError(f'{path}: not JSON, or cut off: {error}') from None


def checked_numbers(value: Any, what: str, count: int) -> list[float]:
    """Return so many finite numbers. ValueError naming `what` for something else."""
    fits = isinstance(value, list) and len(value) == count
    if not fits or not all(isinstance(x, int | float) and math.isfinite(x) for x in value):
        raise ValueError(f'{what}: expected {count} finite numbers, got {value!r:.60}')
    return value


def scene_of(scene_id: Any, scenes: Mapping[str, str] | None) -> str:
    """Return the file of a scene. ValueError if `scenes` has none for it."""
    if scenes is None:
        return str(scene_id)
    if scene_id not in scenes:
        raise ValueError(f'scene {scene_id!r} is not among those of `scenes`')
    return scenes[scene_id]
