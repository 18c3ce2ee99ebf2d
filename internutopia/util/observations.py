"""Observation trees: nested dicts of arrays, of all envs and of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.util.layouts import LEAF, Layout, builder


def split_rows(tree: Mapping[str, Any], env_ids: NDArray[np.intp]) -> list[dict[str, Any]]:
    """Return one dict per env from a tree of arrays `(env_num, ...)`: rows are copies, scalars plain Python values.

    Lists have one entry per env, whose sizes may differ.
    """
    columns: list[Iterable[Any]] = []
    layout = _flatten(tree, env_ids, columns)
    return builder(layout)(range(len(env_ids)), *columns)


def _flatten(tree: Mapping[str, Any], env_ids: NDArray[np.intp], columns: list[Iterable[Any]]) -> Layout:
    """Return the layout of one env's part of a tree; adds the values of all envs, leaf by leaf."""
    layouts: list[Layout] = []
    for item in tree.values():
        if isinstance(item, Mapping):
            layouts.append(_flatten(item, env_ids, columns))
            continue
        layouts.append(LEAF)
        if isinstance(item, list):
            columns.append([own_values(item[env_id]) for env_id in env_ids.tolist()])
        else:
            rows = np.asarray(item)[env_ids]
            columns.append(rows if rows.ndim > 1 else rows.tolist())
    return 'dict', dict, tuple(tree), tuple(layouts)


def own_values(tree: Any) -> Any:
    """Copy an observation of one env where a class returns views of its state; no arrays of rank 0."""
    if isinstance(tree, Mapping):
        return {key: own_values(value) for key, value in tree.items()}
    if isinstance(tree, np.ndarray) and tree.ndim:
        return tree.copy()
    return tree.item() if isinstance(tree, np.ndarray | np.generic) else tree
