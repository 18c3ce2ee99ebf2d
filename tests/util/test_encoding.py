"""Bytes of messages, and bytes that are none."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from internutopia.remote.protocol import ResetReply
from internutopia.util.encoding import ARRAY_CODE, DTYPES, JSON, MAX_ITEMS, MSGPACK, MalformedError, decode, encode


@pytest.mark.parametrize('dtype', sorted(DTYPES))
@pytest.mark.parametrize('shape', [(), (3,), (2, 3), (0, 4)])
def test_arrays_travel(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    came = decode(encode({'a': [array, array.T]}, MSGPACK), MSGPACK)['a']
    for ours, theirs in zip(came, (array, array.T), strict=True):
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs) and ours.shape == theirs.shape
        assert not ours.flags.writeable
    assert decode(encode({'a': array}, JSON), JSON)['a'] == array.tolist()


def test_what_is_not_finite_is_null_in_json() -> None:
    array = np.array([[1.0, np.nan], [-np.inf, 0.5]], np.float32)
    body = encode({'observations': array, 'active': np.ones(2, bool), 'episodes': np.zeros(2, int)}, JSON)
    assert json.loads(body)['observations'] == [[1.0, None], [None, 0.5]]
    read = ResetReply.model_validate(decode(body, JSON)).observations
    assert np.array_equal(read, [[1.0, np.nan], [np.nan, 0.5]], equal_nan=True) and read.dtype == np.float32


def test_other_things_do_not_travel() -> None:
    for value in (np.array([object()]), np.array(['text']), np.zeros(1, complex), object()):
        with pytest.raises(TypeError, match='cannot be sent'):
            encode({'a': value}, MSGPACK)


def packed(value: Any) -> bytes:
    data = msgpack.packb(value)
    assert data is not None
    return data


def array(*parts: Any) -> bytes:
    return packed(msgpack.ExtType(ARRAY_CODE, packed(list(parts))))


WRONG = {
    'nothing': (b'', 'msgpack'),
    'cut off': (encode({'a': np.zeros(9)}, MSGPACK)[:-1], 'msgpack'),
    'followed by more': (encode({}, MSGPACK) + b'\0', 'msgpack'),
    'objects': (array('|O', [1], bytes(8)), "dtype '|O'"),
    'text': (array('<U1', [1], bytes(4)), 'dtype'),
    'a structure': (array('i4,O', [1], bytes(12)), 'dtype'),
    'big-endian': (array('>f4', [1], bytes(4)), 'dtype'),
    'a dtype that is none': (array(['<f4'], [1], bytes(4)), 'dtype'),
    'too few bytes': (array('<f4', [2], bytes(4)), 'got 4 bytes'),
    'too many bytes': (array('<f4', [2], bytes(12)), 'got 12 bytes'),
    'text for bytes': (array('<f4', [1], 'abcd'), 'got'),
    'a negative side': (array('<f4', [-1, -1], bytes(4)), 'shape'),
    'a side that is true': (array('<f4', [True], bytes(4)), 'shape'),
    'a shape that is a number': (array('<f4', 1, bytes(4)), 'shape'),
    'an overflow': (array('<f4', [1 << 62, 4], b''), 'got 0 bytes'),
    'a side beyond all bounds': (array('<f4', [0, 1 << 63], b''), 'shape'),
    'many sides': (array('<f4', [1] * 9, bytes(4)), 'array'),
    'bools that are neither': (array('|b1', [1], b'\2'), 'bools'),
    'two parts': (array('<f4', [1]), 'array'),
    'an array in an array': (array('<f4', [1], msgpack.ExtType(ARRAY_CODE, b'')), 'array'),
    'another extension': (packed(msgpack.ExtType(2, b'x')), 'extension type 2'),
    'many items, in few bytes': (b'\xdd\xff\xff\xff\xff', 'msgpack'),
    'many items, nested': (b'\xdd\x00\x0f\xff\xff' * 300, 'msgpack'),
    'more items than a list may have': (packed([0] * (MAX_ITEMS + 1)), 'msgpack'),
    'many small lists': (packed([[0] * 100] * 3000), 'send numbers as arrays'),
    'many arrays': (packed([msgpack.ExtType(ARRAY_CODE, packed(['<f4', [0], b'']))] * 65), 'more than 64 arrays'),
    'depth': (b'\x91' * 100_000, 'msgpack'),
    'keys that are no text': (packed({1: 2}), 'msgpack'),
    'text that is none': (b'\xa1\xff', 'msgpack'),
}


@pytest.mark.parametrize('name', WRONG)
def test_no_msgpack_message(name: str) -> None:
    body, message = WRONG[name]
    with pytest.raises(MalformedError, match=message.replace('|', r'\|')):
        decode(body, MSGPACK)


@pytest.mark.parametrize(
    'body', [b'', b'{', b'{"a": NaN}', b'{"a": -Infinity}', b'\xff', b'[' * 100_000, b'1' * 5000, b'{} {}']
)
def test_no_json_message(body: bytes) -> None:
    with pytest.raises(MalformedError, match='not a JSON message'):
        decode(body, JSON)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for media_type in (MSGPACK, JSON):
        for variant in (body, packed(msgpack.ExtType(ARRAY_CODE, body))):
            try:
                decode(variant, media_type)
            except MalformedError:
                pass
