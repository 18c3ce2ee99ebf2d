"""Digest of what decides the results of a run: its config, except for the fields that change no result.

Every field counts that is not named in `NO_EFFECT`, those of extension classes included. Files that a config names
count by their paths, not by what they hold; paths below the folder of assets, wherever that is on a machine, are the
same path. Functions and classes count by their names, and objects that are no plain data by their class.

Beside a results file lies `<file>.config.json` with the fields of the digests in its lines. It only serves to report
differences; nothing depends on it.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import numbers
import os
import secrets
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from internutopia.config import Config
from internutopia.macros import gm
from internutopia.util import log

NO_EFFECT: Any = {
    'env_num': True,
    'env_offset_size': True,
    'metrics_save_path': True,
    'resume': True,
    'distribution_config': True,
    'simulator': {
        'device',
        'threads',
        'scene_cache',
        'asset_limits',
        'headless',
        'webrtc',
        'native',
        'use_fabric',
        'omni_compat',
        'physx',
    },
}
"""Fields that change no result: number of envs and processes, machine, and destination of the results."""

_SHOWN = 5  # differences in a message
_ABSENT = object()


class ConfigDigest:
    """Digest of the config fields that decide the results of a run.

    Attributes:
        digest: 16 hexadecimal digits; equal for configs that give the same results.
        values: the fields, as plain data. Equal tasks are one object.
    """

    def __init__(self, config: Config):
        tasks = {id(task): _plain(task.model_dump(warnings=False)) for task in config.task_configs}
        fields = _plain(config.model_dump(exclude={**NO_EFFECT, 'task_configs': True}, warnings=False))
        self.values: dict[str, Any] = {**fields, 'task_configs': [tasks[id(task)] for task in config.task_configs]}
        digest = hashlib.sha256(_text(fields).encode())
        digests = {key: hashlib.sha256(_text(task).encode()).digest() for key, task in tasks.items()}
        for task in config.task_configs:
            digest.update(digests[id(task)])
        self.digest = digest.hexdigest()[:16]

    def extends(self, older: Mapping[str, Any]) -> bool:
        """Return True if an older config differs only in that it has the first of the tasks, each run once."""
        tasks = older['task_configs']
        shorter = {**self.values, 'task_configs': self.values['task_configs'][: len(tasks)]}
        return older == shorter and older['episode_order'] == 'once'

    def differences(self, older: Mapping[str, Any]) -> str:
        """Describe the differences to an older config: the first few fields, and the number of further ones."""
        found = list(_differences(older, self.values, ''))
        more = [f'and {len(found) - _SHOWN} more'] if len(found) > _SHOWN else []
        return '; '.join(found[:_SHOWN] + more)

    def save(self, results: str, keep: bool) -> None:
        """Save the fields of the digest next to a results file; with `keep` those of other digests are kept.

        A file that cannot be written costs a warning.
        """
        path = config_file(results)
        known = _load(path) if keep else {}
        if self.digest in known:
            return
        tasks: dict[str, int] = {}
        order = [tasks.setdefault(_text(task), len(tasks)) for task in self.values['task_configs']]
        own = {**self.values, 'task_configs': order, 'tasks': [json.loads(text) for text in tasks]}
        part = path.with_name(f'{path.name}.{secrets.token_hex(4)}.part')
        try:
            part.write_text(json.dumps({**known, self.digest: own}), encoding='utf-8')
            part.replace(path)
        except OSError as error:
            part.unlink(missing_ok=True)
            log.warning('%s cannot be written (%s): a resumed run cannot report what has changed', path, error.strerror)


def saved_config(results: str, digest: str) -> dict[str, Any] | None:
    """Return the config fields of a digest in a results file; None if they are not known."""
    try:
        own = _load(config_file(results))[digest]
        tasks = own.pop('tasks')
        return {**own, 'task_configs': [tasks[index] for index in own['task_configs']]}
    except (KeyError, IndexError, TypeError, AttributeError):
        return None


def config_file(results: str) -> Path:
    """Return the path of the file, next to a results file, with the config fields of the digests in its lines."""
    return Path(f'{results}.config.json')


def _load(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _differences(older: Any, newer: Any, place: str) -> Iterator[str]:
    if older is newer or older == newer:
        return
    if isinstance(older, Mapping) and isinstance(newer, Mapping):
        for name in {**newer, **older}:
            inner = f'{place}.{name}' if place else name
            yield from _differences(older.get(name, _ABSENT), newer.get(name, _ABSENT), inner)
    elif isinstance(older, list) and isinstance(newer, list) and any(isinstance(e, dict) for e in (*older, *newer)):
        if len(older) != len(newer):
            yield f'{place}: {len(older)} -> {len(newer)} entries'
        for index, (old, new) in enumerate(zip(older, newer, strict=False)):
            yield from _differences(old, new, f'{place}[{index}]')
    else:
        yield f'{place}: {_shown(older)} -> {_shown(newer)}'


def _shown(value: Any) -> str:
    text = 'nothing' if value is _ABSENT else repr(value)
    return text if len(text) <= 60 else f'{text[:57]}...'


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _plain(value: Any, around: frozenset[int] = frozenset()) -> Any:
    """Convert a value to plain JSON, equal in every process and on every machine; `around`: ids of its containers."""
    if id(value) in around:
        return '<itself>'
    if value is None or isinstance(value, bool | int) and not isinstance(value, Enum):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        return f'<assets>{path.removeprefix(gm.ASSET_PATH)}' if str(path).startswith(gm.ASSET_PATH) else str(path)
    inside = around | {id(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item, inside) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, inside) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, inside) for item in value), key=_text)
    if hasattr(value, 'tolist'):
        return _plain(value.tolist())
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, numbers.Number | datetime.date | datetime.time):
        return str(value)
    named = value if hasattr(value, '__qualname__') else type(value)  # a class or function, or else an object
    return f'<{named.__module__}.{named.__qualname__}>'
