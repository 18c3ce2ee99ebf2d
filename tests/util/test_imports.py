"""Lazy names: what keeps them from being imported is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from internutopia.util.imports import import_named, lazy


def test_a_module_that_fails_is_the_cause(tmp_path: Path) -> None:
    (tmp_path / 'broken_module.py').write_text('None.queried')
    (tmp_path / 'lazy_package.py').write_text(
        'from internutopia.util.imports import lazy\n'
        "__getattr__, __dir__ = lazy(__name__, {'Thing': 'broken_module'})\n"
    )
    command = [sys.executable, '-c', 'from lazy_package import Thing']
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (
        "ImportError: lazy_package.Thing cannot be imported: 'NoneType' object has no attribute 'queried'"
        in done.stderr
    )
    assert 'broken_module.py' in done.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    get, _ = lazy('package', {'Thing': 'module'})
    with pytest.raises(AttributeError, match="module 'package' has no attribute 'Thong'"):
        get('Thong')


@pytest.mark.parametrize('name', ['', '../terms.py', '.terms', 'my-terms', '/tmp/terms', 'a..b'])
def test_what_is_no_name_of_a_module_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match='is no name of a module'):
        import_named(name)
