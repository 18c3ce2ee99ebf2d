"""Files that are written whole or not at all: by several writers, through links, with their permissions."""

import os
import stat
from pathlib import Path

import pytest

from internutopia.util.replacing import PART, replacing


def test_a_file_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / 'a.txt'
    with replacing(file) as draft:
        draft.write_text('new')
        assert not file.exists()
    assert file.read_text() == 'new' and os.listdir(tmp_path) == ['a.txt']


def test_nothing_is_left_of_what_failed(tmp_path: Path) -> None:
    file, other = tmp_path / 'a.txt', tmp_path / f'a.txt{PART}'
    file.write_text('old')
    other.write_text('of somebody else')
    with pytest.raises(ZeroDivisionError), replacing(file) as draft:
        draft.write_text('half of it')
        raise ZeroDivisionError
    assert file.read_text() == 'old' and other.read_text() == 'of somebody else'
    assert sorted(os.listdir(tmp_path)) == ['a.txt', f'a.txt{PART}']


def test_of_two_writers_the_last_one_wins(tmp_path: Path) -> None:
    file = tmp_path / 'a.txt'
    with replacing(file) as first, first.open('w') as stream:
        stream.write('first')
        with replacing(file) as second:
            second.write_text('second, which is longer')
        assert file.read_text() == 'second, which is longer'
        stream.flush()
    assert file.read_text() == 'first' and os.listdir(tmp_path) == ['a.txt']


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    file, link = tmp_path / 'a.txt', tmp_path / 'link'
    file.write_text('old')
    file.chmod(0o600)
    link.symlink_to(file)
    with replacing(link) as draft:
        draft.write_text('new')
    assert link.is_symlink() and file.read_text() == 'new'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_errors_name_the_file(tmp_path: Path) -> None:
    folder = tmp_path / 'folder'
    folder.mkdir()
    with pytest.raises(OSError) as error, replacing(folder) as draft:
        draft.write_text('new')
    assert error.value.filename == str(folder) and PART not in str(error.value)
    with (
        pytest.raises(FileNotFoundError, match=r'gone/a\.txt') as gone,
        replacing(tmp_path / 'gone' / 'a.txt') as draft,
    ):
        draft.write_text('new')
    assert PART not in str(gone.value)
