"""YAML files of configs, read within bounds: no file takes all memory, however small it is or deep or cross-linked."""

from __future__ import annotations

import os
from typing import IO, Any

import yaml
from typing_extensions import override

from internutopia.util.bounds import MAX_DEPTH, MAX_FILE, MAX_NODES


class _BoundedLoader(yaml.SafeLoader):
    """Safe loader that counts levels, and what aliases repeat, before anything is built."""

    def __init__(self, stream: Any):
        super().__init__(stream)
        self._depth = 0
        self._count = 0
        self._sizes: dict[int, int] = {}  # of complete nodes, by id

    @override
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event, before = self.peek_event(), self._count
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ValueError(f'more than {MAX_DEPTH} levels{event.start_mark}')
        node = super().compose_node(parent, index)
        self._depth -= 1
        if not isinstance(event, yaml.AliasEvent):
            self._count += 1
            self._sizes[id(node)] = self._count - before
        elif id(node) in self._sizes:
            self._count += self._sizes[id(node)]
        else:
            raise ValueError(f'{event.anchor!r} holds an alias of itself{event.start_mark}')
        if self._count > MAX_NODES:
            raise ValueError(f'more than {MAX_NODES} values, those that aliases repeat included{event.start_mark}')
        return node


def load_yaml(text: str | IO[bytes]) -> Any:
    """Return the data in YAML, text or an open file.

    Raises:
        yaml.YAMLError: it is not YAML; the message has line and column.
        ValueError: it is beyond the bounds (`bounds.py`), or a value is none (a date in month 13).
    """
    loader = _BoundedLoader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def read_mapping(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the mapping in a YAML file (UTF-8).

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not YAML, beyond the bounds, or no mapping; the file is named.
    """
    with open(path, 'rb') as file:
        if (size := os.fstat(file.fileno()).st_size) > MAX_FILE:
            raise ValueError(f'{path}: expected a YAML file of at most {MAX_FILE} bytes, got {size}')
        try:
            values = load_yaml(file)
        except yaml.YAMLError as error:  # it names the file, line and column
            raise ValueError(f'not a YAML file: {error}') from None
        except ValueError as error:
            raise ValueError(f'{path}: {error}') from None
    if not isinstance(values, dict):
        raise ValueError(f'{path}: expected a mapping of field names to values, got {type(values).__name__}')
    return values
