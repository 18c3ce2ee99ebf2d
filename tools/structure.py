"""Structure of the packages in figures: size and share of folders, circles of imports, env classes, docstrings.

Imports by string (`'internutopia.rl:VectorEnv'`) and inside functions count as imports. `benchmarks/step_calls.py` has
the calls of a step and a reset::

    python tools/structure.py
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ('internutopia', 'internutopia_extension')
OPENINGS = re.compile(r'(What|Which|Whether|Who|How|Where)\b')
_MODULE = re.compile(r'internutopia\w*(\.\w+)+')
_ENV_BASES = {'Env', 'VectorEnv', 'GymnasiumVectorEnv', 'VecEnv'}


def files() -> Iterator[tuple[str, Path]]:
    """Yield name and path of every module of the packages."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob('*.py')):
            parts = path.relative_to(ROOT).with_suffix('').parts
            yield '.'.join(parts[:-1] if parts[-1] == '__init__' else parts), path


def lines_by_room(modules: Iterable[str]) -> Counter[str]:
    """Count the lines of each room."""
    paths, rooms = dict(files()), Counter[str]()
    for name in modules:
        rooms[room_of(name)] += paths[name].read_text().count('\n')
    return rooms


def room_of(module: str) -> str:
    """Return the top-level folder of a module, or module next to the folders; the extension is one room."""
    parts = module.split('.')
    return parts[1] if parts[0] == PACKAGES[0] and len(parts) > 1 else parts[0]


def shared_names() -> dict[str, set[str]]:
    """Return names of modules in more than two rooms, with the rooms; engines name their parts alike in one room."""
    rooms: defaultdict[str, set[str]] = defaultdict(set)
    for module, path in files():
        if path.stem not in ('__init__', '__main__'):
            rooms[path.stem].add(room_of(module))
    return {name: where for name, where in rooms.items() if len(where) > 2}


def imports_by_string(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Modules that each module names in a string outside of docstrings."""
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [
            node.value.partition(':')[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
        ]
        found[name] = {text for text in texts if _MODULE.fullmatch(text) and text in trees} - {name}
    return found


def circles(trees: Mapping[str, ast.Module]) -> list[str]:
    """Modules of one circle of imports; empty if there is none. Names that users import lazily do not count."""
    graph = grimp.build_graph(*PACKAGES)
    imports = {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}
    for module, names in imports_by_string(trees).items():
        if not _is_table_of_names(module):
            imports.setdefault(module, set()).update(names)
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return [str(module) for module in error.args[1]]
    return []


def _is_table_of_names(module: str) -> bool:
    """True for a package whose names are imported when a user asks for them, and for the tables of names of 2.x."""
    of_2x = (f'internutopia.compat.v2.{name}' for name in ('gone', 'moved'))
    return module in ('internutopia', 'internutopia.rl', 'internutopia.remote', *of_2x)


def hosts(trees: Mapping[str, ast.Module]) -> tuple[list[str], list[str]]:
    """Return modules outside of `internutopia.compat` that import it, by string too, and their ifs on a version."""
    guest, strings = 'internutopia.compat', imports_by_string(trees)
    importers, branches = [], []
    for name, tree in trees.items():
        if f'{name}.'.startswith(f'{guest}.'):
            continue
        imported = set(strings[name])
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported |= {f'{node.module}.{each.name}' for each in node.names}
            elif isinstance(node, ast.Import):
                imported |= {each.name for each in node.names}
            elif isinstance(node, ast.Compare) and re.search(r"'[23]\.x'|\.compat\b", ast.unparse(node)):
                branches.append(f'{name}:{node.lineno}')
        if any(f'{each}.'.startswith(f'{guest}.') for each in imported):
            importers.append(name)
    return importers, branches


def docstrings(tree: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module, its classes and functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                yield text


def env_classes(trees: Mapping[str, ast.Module]) -> list[str]:
    """Classes whose name or base says that they are an env of some API, as `module:Class`."""
    found = []
    for name, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base).partition('[')[0].rpartition('.')[2] for base in node.bases}
                if bases & _ENV_BASES or re.search(r'(Env|Envs)$', node.name) and 'step' in _methods(node):
                    found.append(f'{name}:{node.name}')
    return found


def _methods(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


def main() -> None:
    """Print the figures."""
    paths = dict(files())
    texts = {name: path.read_text() for name, path in paths.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    rooms = lines_by_room(trees)
    total = sum(rooms.values())
    print(f'{total:,} lines in {len(texts)} files')
    for room, count in rooms.most_common(6):
        print(f'  {room:24} {count:7,} lines, {count / total:4.0%}')
    print('circle of imports:', ' -> '.join(circles(trees)) or 'none')
    importers, branches = hosts(trees)
    print(
        f'modules that import the guest, compat: {len(importers)}; branches on the version elsewhere: {len(branches)}'
    )
    envs = env_classes(trees)
    print(f'env classes: {len(envs)}: {", ".join(envs)}')
    shared = sorted(shared_names().items(), key=lambda item: -len(item[1]))
    print(
        f'module names in more than two rooms: {", ".join(f"{name} {len(where)}" for name, where in shared) or "none"}'
    )
    docs = [text for tree in trees.values() for text in docstrings(tree)]
    print(f'docstrings that open with What, Which, ...: {sum(map(bool, map(OPENINGS.match, docs)))} of {len(docs):,}')


if __name__ == '__main__':
    sys.exit(main())
