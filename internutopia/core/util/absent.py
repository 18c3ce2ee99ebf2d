"""Names of InternUtopia 2.x that have no meaning here: importing one says what to use instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def absent(module: str, instead: Mapping[str, str]) -> Callable[[str], Any]:
    """Makes the `__getattr__` of a module: an ImportError for names that 2.x had there.

    Args:
        module: name of the module.
        instead: by name, what to use or do instead.
    """

    def get(name: str) -> Any:
        if name in instead:
            raise ImportError(f'{module}.{name} of InternUtopia 2.x is not here: {instead[name]}', name=module)
        raise AttributeError(f'module {module!r} has no attribute {name!r}')

    return get
