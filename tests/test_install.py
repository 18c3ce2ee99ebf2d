"""What is said about installing: commands that fit the installation. `internutopia` on package indexes is version 2."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from internutopia.util.imports import install_hint

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']
EXTRAS = set(PROJECT['optional-dependencies'])
FOLDERS = ('internutopia', 'internutopia_extension', 'docs', 'examples', 'benchmarks', 'tests')
FILES = [
    *(ROOT / name for name in ('README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'Makefile')),
    *(file for folder in FOLDERS for file in (ROOT / folder).rglob('*') if file.suffix in ('.py', '.md')),
]
TEXTS = {file.relative_to(ROOT).as_posix(): file.read_text() for file in FILES if file != Path(__file__).resolve()}

COMMAND = re.compile(r"pip install [^`\n]*?-e '\.\[([\w,]+)\]'")
CALL = re.compile(r"""install_hint\(['"](\w+)['"]\)""")
VERSION_2 = re.compile(r"""pip install (?:-\S+ )*['"]?internutopia\b""")


def uses(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    return [
        (name, extra) for name, text in TEXTS.items() for match in pattern.findall(text) for extra in match.split(',')
    ]


def test_the_hint_is_a_command_for_a_checkout_or_a_wheel(tmp_path: Path):
    assert install_hint('gpu') == "pip install -e '.[gpu]' in the checkout of InternUtopia"
    shutil.copytree(ROOT / 'internutopia' / 'util', tmp_path / 'internutopia' / 'util')
    shutil.copy(ROOT / 'internutopia' / '__init__.py', tmp_path / 'internutopia')
    program = (
        "from internutopia.util.imports import *; print(install_hint('gpu')); assert COMMAND in install_hint('rl')"
    )
    of_wheel = subprocess.run(  # -c: modules of the current folder come first
        [sys.executable, '-c', program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert of_wheel.stdout == "pip install 'internutopia3[gpu]'\n"


@pytest.mark.parametrize('pattern', [COMMAND, CALL], ids=['commands', 'hints'])
def test_extras_that_are_named_exist(pattern: re.Pattern[str]):
    found = uses(pattern)
    assert len(found) > 10
    assert [(name, extra) for name, extra in found if extra not in EXTRAS] == []


def test_nobody_is_sent_to_version_2():
    assert [name for name, text in TEXTS.items() if VERSION_2.search(text)] == []


def test_extras_that_others_are_made_of_exist():
    lists = PROJECT['optional-dependencies'].values()
    nested = re.findall(r'internutopia3\[([\w,]+)\]', ' '.join(line for lines in lists for line in lines))
    assert nested and {extra for group in nested for extra in group.split(',')} <= EXTRAS


def test_the_table_of_extras_is_complete():
    table = (ROOT / 'docs' / 'install.md').read_text()
    assert sorted(re.findall(r'^\| `(\w+)` \| \d+ \| ', table, re.MULTILINE)) == sorted(EXTRAS)
