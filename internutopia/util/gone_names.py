"""Gone names: messages for names that an earlier version had and this one has not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

GONE_NAMES: defaultdict[str, dict[str, str]] = defaultdict(dict)
"""Messages by name, by place: a module, a class (`module.Class`) or a kind of registry (`'controller'`)."""


def raise_if_gone(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which raises ImportError for names that are gone from it."""

    def get(name: str) -> Any:
        if name in GONE_NAMES[module]:
            raise ImportError(GONE_NAMES[module][name], name=module)
        raise AttributeError(f'module {module!r} has no attribute {name!r}')

    return get
