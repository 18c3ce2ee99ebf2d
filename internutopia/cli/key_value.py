"""Key-value options: `name=value`, given any number of times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def parse_key_values(texts: Iterable[str], option: str) -> dict[str, Any]:
    """Parse the values of a repeatable option `name=value`, each value as YAML. ValueError names what is malformed."""
    import yaml

    from internutopia.config.yaml_file import load_yaml

    values = {}
    for text in texts:
        name, equals, value = text.partition('=')
        if not (equals and name):
            raise ValueError(f'{option} {text}: expected name=value')
        try:
            values[name] = load_yaml(value)
        except yaml.YAMLError as error:
            raise ValueError(f'{option} {text}: the value is no YAML: {error}') from None
    return values
