"""Switch to the behaviour of InternUtopia 2.x, and the fields of 2.x configs that no longer exist.

What the switch changes is in `internutopia.compat.v2`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import BaseModel

from internutopia.util import did_you_mean, log

Compat = Literal['3.x', '2.x']


def compat_of_process() -> Compat:
    """Return the version that the environment variable INTERNUTOPIA_COMPAT names; `'3.x'` without one."""
    return cast(Compat, os.environ.get('INTERNUTOPIA_COMPAT', '3.x'))  # validated with the field


def known_fields(config: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a config class has fields for; each of the others costs a warning."""
    for name in [name for name in values if name not in config.model_fields]:
        hint = did_you_mean(name, config.model_fields)
        log.warning("compat='2.x': %s has no field %r, it is ignored; %s", config.__name__, name, hint)
    return {name: value for name, value in values.items() if name in config.model_fields}
