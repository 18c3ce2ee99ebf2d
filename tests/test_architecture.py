"""Architecture: modules import each other in one direction only; `.importlinter` says in which."""

import ast
import runpy
from pathlib import Path

structure = runpy.run_path(str(Path(__file__).parents[1] / 'tools' / 'structure.py'))
TREES = {name: ast.parse(path.read_text()) for name, path in structure['files']()}


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert len(TREES) > 400
    assert structure['circles'](TREES) == []  # in functions, for type checking and by string, too


def test_no_room_holds_more_than_a_fifth_of_the_code() -> None:
    lines = structure['lines_by_room'](TREES)
    room, count = lines.most_common(1)[0]
    assert count <= sum(lines.values()) / 5, room


def test_imports_by_string_are_found() -> None:
    tree = ast.parse("""maker = 'internutopia.rl:VectorEnv'""")
    assert structure['imports_by_string']({'a': tree, **TREES})['a'] == {'internutopia.rl'}


def test_2x_is_a_guest() -> None:
    importers, branches = structure['hosts'](TREES)
    robot, util = 'internutopia.core.robot.isaacsim', 'internutopia.core.util'
    thin = {
        f'{robot}.articulation',
        f'{robot}.rigid_body',
        *(f'{util}.{n}' for n in ('gym', 'joint', 'math', 'physics')),
    }
    assert set(importers) == {'internutopia', *thin}  # the package itself, and paths of 2.x
    assert branches == []  # what differs is in hooks: internutopia.util.conventions


def test_docstrings_say_what_things_are_or_do() -> None:
    docs = [text for tree in TREES.values() for text in structure['docstrings'](tree)]
    assert len(docs) > 4000
    assert sum(bool(structure['OPENINGS'].match(text)) for text in docs) < 50  # "What ...", "Whether ..."
