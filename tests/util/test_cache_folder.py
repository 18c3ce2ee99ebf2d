"""Cache folders: what is in them, what makes room, and what happens where they cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from internutopia.util.cache_folder import CacheFolder, code_version


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


def test_what_is_made_is_for_its_user_alone(root, monkeypatch):
    before = os.umask(0o002)  # as many systems have it: groups may write
    try:
        put(CacheFolder('things', 'things'), 'a', 3)
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (root, root / 'things', root / 'things' / 'a')] == [
        0o700,
        0o700,
        0o600,
    ]


@pytest.mark.parametrize('mode', [0o770, 0o777, 0o1777, 0o707])
@pytest.mark.parametrize('inner', [False, True], ids=['cache', 'folder'])
def test_a_folder_that_others_may_write_to_is_refused(root, mode, inner):
    (root / 'things').mkdir(parents=True)
    root.chmod(0o755)
    folder = root / 'things' if inner else root
    folder.chmod(mode)
    with pytest.raises(PermissionError) as error:
        CacheFolder('things', 'things')
    for text in (f'{folder} is not used', f'mode {mode:04o}', 'INTERNUTOPIA_CACHE_PATH', f'chmod 700 {folder}'):
        assert text in str(error.value)
    folder.chmod(0o755)
    put(CacheFolder('things', 'things'), 'a', 3)


@pytest.mark.parametrize('inner', [False, True], ids=['cache', 'folder'])
def test_a_folder_of_somebody_else_is_refused(root, inner, monkeypatch):
    (root / 'things').mkdir(parents=True)
    folder = root / 'things' if inner else root
    if (own := os.geteuid()) == 0:
        os.chown(folder, 12345, -1)
    else:
        own = 12345
        monkeypatch.setattr(os, 'geteuid', lambda: own)
        folder = root  # all is somebody else's
    with pytest.raises(PermissionError) as error:
        CacheFolder('things', 'things')
    text = str(error.value)
    assert f'{folder} is not used: user ' in text and f'runs as user {own}' in text
    assert 'INTERNUTOPIA_CACHE_PATH' in text and f'chown -R {own} {folder}' in text


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can give folders to root')
def test_a_folder_of_root_may_be_read_by_all(root, monkeypatch):
    put(CacheFolder('things', 'things'), 'a', 3)  # as in an image of a container
    root.chmod(0o755)
    monkeypatch.setattr(os, 'geteuid', lambda: 12345)
    assert CacheFolder('things', 'things').used('a').exists()


def test_a_folder_that_appears_meanwhile_is_not_written_to(root, caplog):
    folder = CacheFolder('things', 'things')
    root.mkdir()
    root.chmod(0o777)
    put(folder, 'a', 3)
    assert not (root / 'things' / 'a').exists() and 'others may write to it' in caplog.text


def test_the_version_of_code_follows_every_folder_that_is_named() -> None:
    assert code_version(('model',), ()) != code_version(('model', 'util'), ())
    assert code_version() != code_version(('model',))
    with pytest.raises(FileNotFoundError, match='nothing_here holds no code'):
        code_version(('nothing_here',))
