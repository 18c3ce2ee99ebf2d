"""Look-up of entries of an observation by a name from a config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from internutopia.util import did_you_mean


def pick(obs: Mapping[str, Any], name: str, what: str) -> Any:
    """Return the entry of that name. KeyError that names `what`, with close matches."""
    if name not in obs:
        raise KeyError(f'{what} {name!r} is not in the observations; {did_you_mean(name, obs)}')
    return obs[name]
