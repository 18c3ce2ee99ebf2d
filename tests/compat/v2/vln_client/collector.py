"""Collector of what the robots saw and did, into an LMDB: key is the episode's path key, value all of its actions."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

MAP_SIZE = 1 << 28  # bytes at most
PICTURES = ('rgb', 'depth', 'topdown_rgb', 'topdown_depth')


class Collector:
    """An LMDB that is written an episode at a time, so what is in it is whole."""

    def __init__(self, path: Path):
        import lmdb

        self._database = lmdb.open(str(path), map_size=MAP_SIZE)
        self._running: dict[int, list[dict[str, Any]]] = {}

    def done(self) -> set[str]:
        """Path keys of the episodes that are in it."""
        with self._database.begin() as transaction:
            return {bytes(key).decode() for key, _ in transaction.cursor()}

    def add(self, env_id: int, action: dict[str, Any], obs: dict[str, Any]) -> None:
        """Note an action of an env and what was seen at its end; pictures are there if an action ended there."""
        self._running.setdefault(env_id, []).append(
            {
                'action': action['h1'],
                'position': obs['globalgps'],
                'orientation': obs['globalrotation'],
                **{name: np.array(obs[name]) for name in PICTURES if name in obs},
            }
        )

    def save(self, env_id: int, path_key: str, figures: dict[str, Any]) -> None:
        """Write the episode of an env."""
        value = {'steps': self._running.pop(env_id, []), 'result': figures}
        with self._database.begin(write=True) as transaction:
            transaction.put(path_key.encode(), pickle.dumps(value))

    def read(self, path_key: str) -> dict[str, Any]:
        """An episode."""
        with self._database.begin() as transaction:
            return pickle.loads(bytes(transaction.get(path_key.encode()) or b''))

    def close(self) -> None:
        self._database.close()
