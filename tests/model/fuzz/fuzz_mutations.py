"""Mutations of files: the same ones for the same seed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_NUMBER = re.compile(rb'(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?')
_NUMBERS = (b'1e308', b'-1', b'nan', b'inf', b'0', b'1000000000', b'99999999999999999999', b'1e-308', b'-1e30')
_WORDS = (
    b'\xff\xff\xff\xff',
    b'\xff\xff\xff\x7f',
    b'\0\0\0\0',
    b'\0\0\xc0\x7f',
    b'\0\0\0\x80',
    b'\xff' * 8,
    b'\0' * 8,
    b'\0' * 6 + b'\xf8\x7f',
)


def mutated(data: bytes, seed: int) -> bytes:
    """A file with one to four faults."""
    rng = random.Random(seed)
    for _ in range(rng.randint(1, 4)):
        data = rng.choice(_MUTATIONS)(data, rng)
    return data


def _chunk(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice((1, 4, 30, 200)))


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 3, 20)) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _truncate(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _duplicate(data: bytes, rng: random.Random) -> bytes:
    start, end = _chunk(data, rng)
    return data[:end] + data[start:end] * rng.choice((1, 1, 5, 300)) + data[end:]


def _delete(data: bytes, rng: random.Random) -> bytes:
    start, end = _chunk(data, rng)
    return data[:start] + data[end:]


def _nest(data: bytes, rng: random.Random) -> bytes:
    start, end = _chunk(data, rng)
    place = rng.randrange(len(data) + 1)
    return data[:place] + data[start:end] + data[place:]


def _number(data: bytes, rng: random.Random) -> bytes:
    """Another number in text; in what has none, another word."""
    found = [match.span() for match in _NUMBER.finditer(data)]
    if not found:
        return _word(data, rng)
    start, end = rng.choice(found)
    return data[:start] + rng.choice(_NUMBERS) + data[end:]


def _word(data: bytes, rng: random.Random) -> bytes:
    word, place = rng.choice(_WORDS), rng.randrange(len(data) + 1)
    return data[:place] + word + data[place + len(word) :]


_MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip,
    _truncate,
    _duplicate,
    _delete,
    _nest,
    _number,
    _number,
    _word,
)
