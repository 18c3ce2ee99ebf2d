"""Zip archives in parts: every file as it was put in, in few reads, and faults that are named."""

from __future__ import annotations

import numpy as np
import pytest
from archives import LINK, dataset, in_parts, zipped

from internutopia.asset_tools.split_zip import Part, SplitZip

FILES = dataset() | {'empty': b'', 'large': np.random.default_rng(0).bytes(300_000)}


def parts(contents: list[bytes], reads: list[int] | None = None) -> list[Part]:
    def part(name: str, content: bytes) -> Part:
        def read(start: int, end: int) -> bytes:
            if reads is not None:
                reads.append(end - start)
            return content[start:end]

        return Part(name, len(content), read)

    names = [f'a.z{k + 1:02}' for k in range(len(contents) - 1)]
    return [part(name, content) for name, content in zip([*names, 'a.zip'], contents, strict=True)]


@pytest.mark.parametrize('zip64', [False, True])
@pytest.mark.parametrize('size', [1 << 40, 200_000, 70_000, 999])  # at 999, the table lies in several parts
def test_every_file_is_as_it_was_put_in(size: int, zip64: bool) -> None:
    archive = SplitZip(parts(in_parts(zipped(FILES), size, zip64)))
    assert set(archive.entries) == set(FILES)
    for run in archive.runs(archive.entries.values()):
        for entry, content in archive.read(run):
            wanted = FILES[entry.path]
            assert entry.is_link == (isinstance(wanted, str) and wanted.startswith(LINK))
            assert content == (wanted.removeprefix(LINK).encode() if isinstance(wanted, str) else wanted)


def test_an_ordinary_archive_with_a_comment_is_read() -> None:
    data = zipped(FILES)
    data = data[:-2] + b'\5\0hello'
    archive = SplitZip(parts([data]))
    ((_, content),) = archive.read([archive.entries['large']])
    assert content == FILES['large']


def test_only_what_is_asked_for_is_read_and_neighbours_together() -> None:
    reads: list[int] = []
    files = {f'small/{k}': bytes(10) for k in range(50)} | {'far': b'x'}
    between = {f'noise/{k}': np.random.default_rng(k).bytes(100_000) for k in range(20)}
    archive = SplitZip(parts([zipped({**files, **between, 'end': b'y'})], reads))
    assert sum(reads) < 150_000  # the table of contents
    reads.clear()
    runs = archive.runs([archive.entries[path] for path in [*files, 'end']])
    assert [len(run) for run in runs] == [51, 1]
    assert [content for run in runs for _, content in archive.read(run)] == [*files.values(), b'y']
    assert len(reads) == 2 and sum(reads) < 10_000


def test_missing_parts_are_named() -> None:
    contents = in_parts(zipped(FILES), 70_000)
    with pytest.raises(ValueError, match=r'a\.zip: the archive has 15 parts, there are a\.z01, a\.z02'):
        SplitZip(parts(contents[1:]))


def test_damage_is_named() -> None:
    data = bytearray(zipped(FILES))
    archive = SplitZip(parts([bytes(data)]))
    entry = archive.entries['large']
    data[entry.offset + 1000] ^= 1
    archive = SplitZip(parts([bytes(data)]))
    with pytest.raises(ValueError, match='large is damaged in the archive'):
        list(archive.read([entry]))
    with pytest.raises(ValueError, match=r'a\.zip: not a zip archive'):
        SplitZip(parts([b'<html>not what was asked for</html>']))


def test_a_source_that_does_not_serve_ranges_is_named() -> None:
    data = zipped(FILES)
    with pytest.raises(ValueError, match='does not serve parts of files'):
        SplitZip([Part('a.zip', len(data), lambda start, end: data)])
