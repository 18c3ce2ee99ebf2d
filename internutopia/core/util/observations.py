"""Observation trees: nested dicts of arrays, of all envs and of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def split_rows(tree: Mapping[str, Any], env_ids: NDArray[np.intp]) -> list[dict[str, Any]]:
    """One dict per env from a tree of arrays `(env_num, ...)`: rows are copies, scalars plain Python values.

    Lists have one entry per env, whose sizes may differ.
    """
    columns: list[list[Any]] = []
    for value in tree.values():
        if isinstance(value, Mapping):
            columns.append(split_rows(value, env_ids))
        elif isinstance(value, list):
            columns.append([own_values(value[env_id]) for env_id in env_ids.tolist()])
        else:
            rows = np.asarray(value)[env_ids]
            columns.append(list(rows) if rows.ndim > 1 else rows.tolist())
    if not columns:
        return [{} for _ in range(len(env_ids))]
    keys = tuple(tree)
    return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]


def own_values(tree: Any) -> Any:
    """An observation of one env with arrays of its own, also where a class hands out its state; no arrays of rank 0."""
    if isinstance(tree, Mapping):
        return {key: own_values(value) for key, value in tree.items()}
    if isinstance(tree, np.ndarray) and tree.ndim:
        return tree.copy()
    return tree.item() if isinstance(tree, np.ndarray | np.generic) else tree
