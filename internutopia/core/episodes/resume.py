"""Resumed runs: episodes that are done, from the results file."""

from __future__ import annotations

import json
import os
from typing import Any, Literal

from internutopia.core.episodes.config_digest import ConfigDigest, config_file, saved_config
from internutopia.core.episodes.record import from_values
from internutopia.core.episodes.results_file import is_torn
from internutopia.util import log

_DAMAGED = 'The line is damaged, or was not written by a run: delete it, and its episode is run again'
_ELSEWHERE = 'set metrics_save_path to another file'


def read_done(path: str, config: ConfigDigest, resume: Literal[True, 'force']) -> tuple[frozenset[int], int]:
    """Read the results of an earlier part of the run.

    Args:
        path: the results file.
        config: digest of the config of the run that is resumed.
        resume: with `'force'`, results of another config count as done as well, with a warning.

    Returns:
        The ids of the episodes that are done, and the size of the file without a torn last line [bytes].

    Raises:
        ValueError: a line is damaged, an episode has two, or a result is of another config, unless forced; file, line
            and the differences are named.
    """
    lines: dict[int, int] = {}  # line number by episode id
    others: dict[str | None, tuple[int, int]] = {}  # of each other config: first line and number of lines
    size = 0
    with open(path, 'rb') as file:
        end = os.fstat(file.fileno()).st_size
        for number, line in enumerate(file, 1):
            values = _parse(line)
            if values is None and is_torn(line) and size + len(line) == end:
                break
            try:
                result = from_values(line[:80] if values is None else values)
            except ValueError as mistake:
                raise ValueError(f'{path}, line {number}: {mistake}. {_DAMAGED}; or {_ELSEWHERE}') from None
            size += len(line)
            if result.episode_id in lines:
                raise ValueError(
                    f'{path}, line {number}: a second result of episode {result.episode_id}, after line '
                    f'{lines[result.episode_id]}. Delete the one that does not count, or {_ELSEWHERE}'
                )
            lines[result.episode_id] = number
            if result.config != config.digest:
                first, count = others.get(result.config, (number, 0))
                others[result.config] = first, count + 1
    for digest, (first, count) in others.items():
        more = f' and {count - 1} more' if count > 1 else ''
        text = f'{path}, line {first}{more}: {_difference(path, digest, config)}'
        if resume != 'force':
            raise ValueError(
                f'{text}. Resume with the config of that run, or {_ELSEWHERE}; '
                "resume='force' (internutopia run --resume=force) goes on in spite of it, and mixes results of both"
            )
        log.warning("resume='force': %s", text)
    return frozenset(lines), size


def _parse(line: bytes) -> Any:
    """Parse a line; None if it is not complete."""
    try:
        return json.loads(line) if line.endswith(b'\n') else None
    except (ValueError, RecursionError):
        return None


def _difference(path: str, digest: str | None, config: ConfigDigest) -> str:
    """Describe how a result of another config differs from those of this one."""
    if digest is None:
        return 'a result without its config, of an older version'
    older = saved_config(path, digest)
    if older is None:
        return f'a result of another config; {config_file(path)}, which says of which, is missing or damaged'
    return f'a result of another config: {config.differences(older)}'
