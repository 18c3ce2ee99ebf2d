"""Options of the form `name=value`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml


def parse_pairs(pairs: Iterable[str], option: str) -> dict[str, Any]:
    """What was given with an option that may be repeated; values are YAML. ValueError naming what is no pair."""
    values = {}
    for pair in pairs:
        name, equals, text = pair.partition('=')
        if not (equals and name):
            raise ValueError(f'{option} {pair}: expected name=value')
        try:
            values[name] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ValueError(f'{option} {pair}: the value is no YAML: {error}') from None
    return values
