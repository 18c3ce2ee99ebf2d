"""Resumed runs: which episodes are done, as the results file says."""

from __future__ import annotations

import json
import os
from itertools import islice
from typing import Any

from internutopia.core.config import Config
from internutopia.core.episodes import task_order
from internutopia.core.episodes.results_file import is_torn


def read_done(path: str, config: Config) -> tuple[frozenset[int], int]:
    """Read the results of an earlier part of the run.

    Returns:
        The ids of the episodes that are done, and the size of the file without a torn last line [bytes].

    Raises:
        ValueError: a line is not a result of this config, or an episode has two; file and line are named.
    """
    tasks: dict[int, int] = {}  # task index by episode id
    lines: dict[int, int] = {}  # line number by episode id
    size = 0
    with open(path, 'rb') as file:
        for number, line in enumerate(file, 1):
            result = _parse(line)
            if result is None and is_torn(line) and size + len(line) == os.fstat(file.fileno()).st_size:
                break
            size += len(line)
            try:
                episode_id, task_index = _checked(result, line, config)
                if episode_id in lines:
                    raise ValueError(f'a second result of episode {episode_id}, after line {lines[episode_id]}')
            except ValueError as mistake:
                raise _refusal(path, number, str(mistake)) from None
            tasks[episode_id], lines[episode_id] = task_index, number
    if config.episode_order == 'shuffle' and tasks:
        assert config.seed is not None
        order = task_order(len(config.task_configs), 'shuffle', config.seed)
        for episode_id, expected in enumerate(islice(order, max(tasks) + 1)):
            if tasks.get(episode_id, expected) != expected:
                raise _refusal(
                    path,
                    lines[episode_id],
                    f'episode {episode_id} of seed {config.seed} is task_configs[{expected}], here it is '
                    f'task_configs[{tasks[episode_id]}]',
                )
    return frozenset(tasks), size


def _parse(line: bytes) -> Any:
    """What a line says; None if it is not complete."""
    try:
        return json.loads(line) if line.endswith(b'\n') else None
    except ValueError:
        return None


def _checked(result: Any, line: bytes, config: Config) -> tuple[int, int]:
    """Episode id and task index of a result. ValueError if it cannot be one of this config."""
    if not isinstance(result, dict):
        raise ValueError(f'expected a result, as a JSON object, got {line[:80]!r}')
    numbers: list[int] = []
    for key in ('episode_id', 'task_index'):
        value = result.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f'expected {key!r} to be an integer of 0 or more, got {value!r}')
        numbers.append(value)
    episode_id, task_index = numbers
    count = len(config.task_configs)
    if task_index >= count:
        raise ValueError(f"'task_index' is {task_index}, but task_configs has {count} entries")
    expected = {'once': episode_id, 'cycle': episode_id % count, 'shuffle': task_index}[config.episode_order]
    if task_index != expected:
        raise ValueError(
            f"with episode_order='{config.episode_order}' and {count} task_configs, 'task_index' of episode "
            f'{episode_id} is {expected}, got {task_index}'
        )
    task_type = config.task_configs[task_index].type
    if result.get('task') != task_type:
        raise ValueError(f"task_configs[{task_index}] is a {task_type!r}, here 'task' is {result.get('task')!r}")
    return episode_id, task_index


def _refusal(path: str, line: int, mistake: str) -> ValueError:
    return ValueError(
        f'{path}, line {line}: {mistake}. Only the results of one run of this config can be resumed: set '
        'metrics_save_path to another file, or resume=False'
    )
