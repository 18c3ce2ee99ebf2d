"""Layouts of nested values: functions that take apart many values of one layout, and that put them together.

They are made for each layout: one loop without inner ones takes a third to a half of the time that it takes to go
through layout and values together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

Layout = tuple[Any, ...]
"""`('dict', class, keys, items)`, `('list', class, items)` or `('leaf',)`: the type of a leaf does not matter."""
LEAF: Layout = ('leaf',)

_MAX_LAYOUTS = 256  # that are remembered


class LayoutMismatchError(Exception):
    """A value is of another layout."""


@functools.lru_cache(maxsize=_MAX_LAYOUTS)
def reader(layout: Layout) -> Callable[[Sequence[Any]], list[tuple[Any, ...]]]:
    """Return a function that takes values apart: the leaves of each. LayoutMismatchError for one of another layout."""
    scope: dict[str, Any] = {'Mismatch': LayoutMismatchError}
    lines, leaves = list[str](), list[str]()
    _read(layout, 'value', lines, leaves, scope)
    body = [*lines, f'rows.append(({"".join(f"{leaf}, " for leaf in leaves)}))']
    text = ['def read(values):', '    rows = []', '    for value in values:', *(f'        {line}' for line in body)]
    exec('\n'.join([*text, '    return rows']), scope)
    return scope['read']


def _read(layout: Layout, value: str, lines: list[str], leaves: list[str], scope: dict[str, Any]) -> None:
    """Add lines that take a named value apart; returns the names of its leaves."""
    kind = layout[0]
    if kind == 'leaf':
        leaves.append(value)
        return
    name = f'name{len(scope)}'
    scope[name], scope[f'{name}_keys'] = layout[1], list(layout[2]) if kind == 'dict' else len(layout[2])
    keys = f'[*{value}]' if kind == 'dict' else f'len({value})'
    lines.append(f'if type({value}) is not {name} or {keys} != {name}_keys: raise Mismatch')
    items = [f'{name}_{index}' for index in range(len(layout[-1]))]
    if items:
        lines.append(f'{", ".join(items)}, = {value}{".values()" if kind == "dict" else ""}')
    for item, item_name in zip(layout[-1], items, strict=True):
        _read(item, item_name, lines, leaves, scope)


@functools.lru_cache(maxsize=_MAX_LAYOUTS)
def builder(layout: Layout) -> Callable[..., list[Any]]:
    """Return a function that makes values from the numbers of rows and the columns of their leaves."""
    scope: dict[str, Any] = {}
    leaves = ['_']
    value = _expression(layout, leaves, scope)
    return eval(f'lambda *columns: [{value} for {", ".join(leaves)}, in zip(*columns, strict=True)]', scope)


def _expression(layout: Layout, leaves: list[str], scope: dict[str, Any]) -> str:
    """Return source text that makes a value of a layout from names of its leaves; adds those, classes and keys."""
    kind = layout[0]
    if kind == 'leaf':
        leaves.append(f'leaf{len(leaves)}')
        return leaves[-1]
    items = [_expression(item, leaves, scope) for item in layout[-1]]
    names = [f'name{len(scope) + index}' for index in range(1 + len(items))]
    if kind == 'dict':
        scope.update(zip(names, layout[1:2] + layout[2], strict=True))
        pairs = ', '.join(f'{key}: {item}' for key, item in zip(names[1:], items, strict=True))
        return f'{{{pairs}}}' if layout[1] is dict else f'{names[0]}({{{pairs}}})'
    row = ''.join(f'{item}, ' for item in items)
    if layout[1] not in (list, tuple):  # a named tuple
        scope[names[0]] = functools.partial(tuple.__new__, layout[1])
        return f'{names[0]}(({row}))'
    return f'[{row}]' if layout[1] is list else f'({row})'
