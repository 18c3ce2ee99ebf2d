"""Observation trees: nested dicts of arrays, of all envs and of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def split_rows(tree: Mapping[str, Any], env_ids: NDArray[np.intp]) -> list[dict[str, Any]]:
    """Return one dict per env from a tree of arrays `(env_num, ...)`: rows are copies, scalars plain Python values.

    Lists have one entry per env, whose sizes may differ.
    """
    observations: list[dict[str, Any]] = list(map(dict, [()] * len(env_ids)))
    for name, item in tree.items():
        values: Iterable[Any]
        if isinstance(item, Mapping):
            values = split_rows(item, env_ids)
        elif isinstance(item, list):
            values = [own_values(item[env_id]) for env_id in env_ids.tolist()]
        else:
            rows = np.asarray(item)[env_ids]
            values = rows if rows.ndim > 1 else rows.tolist()
        for observation, value in zip(observations, values, strict=True):
            observation[name] = value
    return observations


def own_values(tree: Any) -> Any:
    """Copy an observation of one env where a class returns views of its state; no arrays of rank 0."""
    if isinstance(tree, Mapping):
        return {key: own_values(value) for key, value in tree.items()}
    if isinstance(tree, np.ndarray) and tree.ndim:
        return tree.copy()
    return tree.item() if isinstance(tree, np.ndarray | np.generic) else tree
