"""YAML files of configs.

They are read within bounds: no file takes all memory, however small it is or deep or cross-linked. Names of files in
them have a form that is valid on any machine:

| name | file that it is here |
|---|---|
| `assets:robots/h1/h1.usd` | that of the asset folder, `gm.ASSET_PATH` |
| `package:my_robots/lift.xml` | that of the installed Python package `my_robots` |
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import PurePath
from typing import IO, Any

import yaml
from typing_extensions import override

from internutopia.macros import gm
from internutopia.util.bounds import MAX_DEPTH, MAX_FILE, MAX_NODES
from internutopia.util.imports import extension_packages


class _BoundedLoader(yaml.SafeLoader):
    """Safe loader that counts levels, and what aliases repeat, before anything is built, and refuses a key twice."""

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

    @override
    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise ValueError(f'{key.value!r} is duplicated{key.start_mark}')
                seen.add(key.value)
        return node


def load_yaml(text: str | IO[bytes]) -> Any:
    """Return the data in YAML, text or an open file.

    Raises:
        yaml.YAMLError: it is not YAML; the message has line and column.
        ValueError: it is beyond the bounds (`bounds.py`), has a key twice, or a value is none (a date in month 13).
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
        ValueError: it is not YAML, beyond the bounds, has a key twice, or is no mapping; the file is named.
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


_ASSETS, _PACKAGE = 'assets:', 'package:'


def portable(values: Any) -> Any:
    """Return plain data in which files of the asset folder and of extension packages have names valid on any machine.

    Extension packages are those that InternUtopia finds by their entry points, wherever they are installed.
    """
    prefixes = {folder: f'{_PACKAGE}{name}/' for name in extension_packages() if (folder := _folder_of(name))}
    prefixes[gm.ASSET_PATH] = _ASSETS

    def name(text: str) -> str:
        for parent in PurePath(text).parents if '/' in text else ():
            if (prefix := prefixes.get(str(parent))) is not None:
                return prefix + PurePath(text).relative_to(parent).as_posix()
        return text

    return _mapped(values, name)


def expanded(values: Any) -> Any:
    """Return plain data in which names of files are their paths on this machine."""
    return _mapped(values, local_path)


def local_path(name: str) -> str:
    """Return the path that a name of a file stands for on this machine; other texts, and packages not found, stay."""
    if name.startswith(_ASSETS):
        return f'{gm.ASSET_PATH}/{name.removeprefix(_ASSETS)}'
    if name.startswith(_PACKAGE):
        package, _, path = name.removeprefix(_PACKAGE).partition('/')
        folder = _folder_of(package)
        return name if folder is None else f'{folder}/{path}'
    return name


def missing_package(name: str) -> str | None:
    """Return the package that a name of a file refers to if it is not installed here, else None."""
    package = name.removeprefix(_PACKAGE).partition('/')[0]
    return package if name.startswith(_PACKAGE) and _folder_of(package) is None else None


def _folder_of(package: str) -> str | None:
    """Return the folder of a Python package, which is not imported; None if there is none of that name."""
    found = importlib.util.find_spec(package) if package.isidentifier() else None
    return next(iter((found and found.submodule_search_locations) or ()), None)


def _mapped(values: Any, change: Callable[[str], str]) -> Any:
    """Return a copy with each text in it changed, names of fields apart."""
    if isinstance(values, str):
        return change(values)
    if isinstance(values, dict):
        return {name: _mapped(value, change) for name, value in values.items()}
    return [_mapped(value, change) for value in values] if isinstance(values, list) else values
