"""Cache folders: what is in them, what makes room, and what happens where they cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from internutopia.core.util.cache_folder import CacheFolder


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv('INTERNUTOPIA_CACHE_PATH', str(tmp_path / 'cache'))
    return tmp_path / 'cache'


def put(folder: CacheFolder, name: str, size: int) -> None:
    folder.write(name, lambda file: file.write(bytes(size)))


def age(folder: CacheFolder, name: str, seconds: int) -> None:
    """Let a file have been used that long after 1970."""
    os.utime(folder.path / name, (seconds, seconds))


def names(folder: CacheFolder) -> list[str]:
    return sorted(file.name for file in folder.path.iterdir())


def test_a_folder_is_made_when_something_is_written(root):
    folder = CacheFolder('things', 'things')
    assert folder.path == root / 'things' and not root.exists() and not folder.used('a').exists()
    put(folder, 'a', 3)
    assert folder.used('a').read_bytes() == bytes(3)


def test_what_was_used_least_recently_makes_room():
    folder = CacheFolder('things', 'things', capacity=100)
    for seconds, name in enumerate('abc'):
        put(folder, name, 30)
        age(folder, name, seconds)
    folder.used('a')
    put(folder, 'd', 40)
    assert names(folder) == ['a', 'c', 'd']
    put(folder, 'large', 101)
    assert names(folder) == []


def test_a_file_that_is_not_finished_is_not_there_and_leaves_nothing(caplog):
    folder = CacheFolder('things', 'things')

    def fails(file: object) -> None:
        put(CacheFolder('things', 'things'), 'other', 1)
        assert not folder.used('a').exists() and len(names(folder)) == 2
        raise OSError(28, 'No space left on device')

    folder.write('a', fails)
    assert names(folder) == ['other']
    (message,) = caplog.messages
    assert 'things are not kept' in message and 'No space left' in message and 'INTERNUTOPIA_CACHE_PATH' in message
    folder.write('a', fails)  # not tried again
    assert len(caplog.messages) == 1
