"""Zip archive, whole or in parts (`a.z01`, `a.z02`, ..., `a.zip`); reads chosen files by byte ranges.

Neither the archive nor its parts have to be on this machine: a `Part` is a size and a function that returns bytes. The
table of contents is read once; then files that lie near each other are read together, in one range.

The format is PKWARE's APPNOTE.TXT; `zipfile` reads it, but not across parts.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from typing_extensions import override

_LOCAL = struct.Struct('<4s22xHH')  # header before a file's data: signature, lengths of name and extra field
_ROOM_FOR_EXTRA = 256  # bytes of the extra field before the data, whose length only the header itself has
_GAP = 1 << 18  # bytes between two files that are read along rather than requested again
_RUN = 16 << 20  # bytes that are read in one range, except for larger files
_TAIL = (1 << 16) + 128  # bytes at the end, where the table of contents is found
_LOCATOR = struct.Struct('<4sLQL')  # of the Zip64 record: signature, its part, its place there, number of parts
_END = struct.Struct('<4xH16x')  # record at the end: number of its part, from 0 on
_RECORD = 56  # bytes of the Zip64 record, which stands before its locator


@dataclass(frozen=True)
class Part:
    """Part of an archive: its name, size [bytes] and `read(start, end)`."""

    name: str
    size: int
    read: Callable[[int, int], bytes]


@dataclass(frozen=True)
class Entry:
    """File in an archive. `offset`: position of its header from the start of the first part [bytes]."""

    path: str
    size: int
    crc: int
    offset: int
    packed_size: int
    method: int
    is_link: bool

    @property
    def end(self) -> int:
        """Upper bound of the end of its data, unless the extra field is larger than usual."""
        return self.offset + _LOCAL.size + len(self.path.encode()) + _ROOM_FOR_EXTRA + self.packed_size


class SplitZip:
    """Reader of an archive: its table of contents and its files.

    Attributes:
        entries: files and links, without folders, by path.

    Args:
        parts: in order, the one with the suffix `.zip` last.

    Raises:
        ValueError: the archive is broken, or a part is missing.
        OSError: a part cannot be read.
    """

    def __init__(self, parts: Sequence[Part]):
        self._stream = _Stream(parts)
        self._name = parts[-1].name
        contents = _Contents(self._stream)
        if contents.part_count != len(parts):
            parts_named = ', '.join(part.name for part in parts)
            raise ValueError(f'{self._name}: the archive has {contents.part_count} parts, there are {parts_named}')
        try:
            with zipfile.ZipFile(io.BufferedReader(contents)) as archive:
                found = archive.infolist()
        except (zipfile.BadZipFile, struct.error, NotImplementedError) as error:
            raise ValueError(f'{self._name}: not a zip archive that can be read: {error}') from error
        # zipfile takes every place for one in the part where the table of contents begins
        base = self._stream.starts[self._stream.part_at(archive.start_dir)]
        self.entries = {
            info.filename: Entry(
                path=info.filename,
                size=info.file_size,
                crc=info.CRC,
                offset=info.header_offset - base + self._stream.starts[info.volume],
                packed_size=info.compress_size,
                method=info.compress_type,
                is_link=stat.S_ISLNK(info.external_attr >> 16),
            )
            for info in found
            if not info.is_dir()
        }

    def runs(self, entries: Iterable[Entry]) -> list[list[Entry]]:
        """Group entries into runs, each of which is read in one range."""
        runs: list[list[Entry]] = []
        for entry in sorted(entries, key=lambda entry: entry.offset):
            near = runs and entry.offset - runs[-1][-1].end <= _GAP and entry.end - runs[-1][0].offset <= _RUN
            if near:
                runs[-1].append(entry)
            else:
                runs.append([entry])
        return runs

    def read(self, run: Sequence[Entry]) -> Iterator[tuple[Entry, bytes]]:
        """Read the entries of a run with their contents. ValueError for one that is damaged."""
        start = run[0].offset
        data = memoryview(self._stream.read(start, min(run[-1].end, self._stream.size)))
        for entry in run:
            yield entry, self._unpacked(entry, data[entry.offset - start :])

    def _unpacked(self, entry: Entry, data: memoryview) -> bytes:
        signature, name, extra = _LOCAL.unpack_from(data) if len(data) >= _LOCAL.size else (b'', 0, 0)
        begin = _LOCAL.size + name + extra
        packed = data[begin : begin + entry.packed_size]
        if len(packed) < entry.packed_size:  # a large extra field
            packed = self._stream.read(entry.offset + begin, entry.offset + begin + entry.packed_size)
        try:
            if signature != b'PK\3\4' or entry.method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError
            deflated = entry.method == zipfile.ZIP_DEFLATED
            content = zlib.decompressobj(-15).decompress(packed, entry.size + 1) if deflated else bytes(packed)
            if len(content) != entry.size or zlib.crc32(content) != entry.crc:
                raise ValueError
        except (ValueError, zlib.error):
            raise ValueError(f'{self._name}: {entry.path} is damaged in the archive') from None
        return content


class _Stream:
    """The concatenated parts as one file."""

    def __init__(self, parts: Sequence[Part]):
        self._parts, self.name = parts, parts[-1].name
        self.starts = [0, *accumulate(part.size for part in parts)]
        self.size = self.starts.pop()

    def part_at(self, place: int) -> int:
        """Return the index of the part with the byte at a position."""
        return bisect_right(self.starts, place) - 1

    def read(self, start: int, end: int) -> bytes:
        """Read the bytes from `start` up to `end`. ValueError if a part returns another number of them."""
        pieces = []
        while start < end:
            index = self.part_at(start)
            part, begin = self._parts[index], self.starts[index]
            stop = min(end, begin + part.size)
            piece = part.read(start - begin, stop - begin)
            if len(piece) != stop - start:
                raise ValueError(
                    f'{part.name}: requested bytes {start - begin} to {stop - begin}, got {len(piece)} bytes: '
                    'its server does not serve parts of files (HTTP ranges)'
                )
            pieces.append(piece)
            start = stop
        return b''.join(pieces)


class _Contents(io.RawIOBase):
    """File object from which `zipfile` reads the table of contents; the tail, which it reads several times, is cached.

    Attributes:
        part_count: number of parts, as recorded in the archive.
    """

    def __init__(self, stream: _Stream):
        self._stream, self._place = stream, 0
        self._tail_at = max(0, stream.size - _TAIL)
        tail = stream.read(self._tail_at, stream.size)
        end = tail.rfind(b'PK\5\6')
        if end < 0 or end + _END.size > len(tail):
            raise ValueError(f'{stream.name}: not a zip archive, or its end is missing')
        (last,) = _END.unpack_from(tail, end)
        locator = end - _LOCATOR.size
        if locator >= 0 and tail[locator : locator + 4] == b'PK\6\7':
            *_, count = _LOCATOR.unpack_from(tail, locator)
            last = max(count, 1) - 1
            # zipfile refuses all but one part
            one = _LOCATOR.pack(b'PK\6\7', 0, self._tail_at + locator - _RECORD, 1)
            tail = tail[:locator] + one + tail[end:]
        self._tail = tail
        self.part_count = last + 1

    @override
    def readable(self) -> bool:
        return True

    @override
    def seekable(self) -> bool:
        return True

    @override
    def tell(self) -> int:
        return self._place

    @override
    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._stream.size}[whence]
        if base + offset < 0:
            raise OSError('before the start of the archive')
        self._place = base + offset
        return self._place

    @override
    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] - any buffer
        end = min(self._place + len(buffer), self._stream.size)
        if self._place >= self._tail_at:
            data = self._tail[self._place - self._tail_at : end - self._tail_at]
        else:
            end = min(end, self._tail_at)
            data = self._stream.read(self._place, end)
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)
