"""Encoding of the messages: msgpack or JSON.

In msgpack an array is extension type 1, `[dtype, shape, bytes]` packed by msgpack again, with dtypes such as `'<f4'`;
only bools, integers and floats are sent. In JSON arrays are nested lists, in which a number that is not finite is null.

Decoding runs nothing that the sender chose and makes nothing much larger than what was sent: headers are checked, and
depth and number of items are bounded.
"""

from __future__ import annotations

import json
import math
import reprlib
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

MSGPACK = 'application/msgpack'
JSON = 'application/json'
MediaType = Literal['application/msgpack', 'application/json']

ARRAY_CODE = 1
"""Extension type of arrays in msgpack."""
DTYPES = frozenset(('|b1', '|i1', '|u1', '<i2', '<u2', '<i4', '<u4', '<i8', '<u8', '<f2', '<f4', '<f8'))
"""Supported dtypes of arrays."""
MAX_DIMS = 8
MAX_ITEMS = 1 << 16
"""Maximum number of items in a list or map (not of an array)."""
# of a msgpack message: many small things take long to make
_MAX_ITEMS_IN_ALL = 4 * MAX_ITEMS
_MAX_ARRAYS = 64


class MalformedError(ValueError):
    """Raised for bytes that are not a valid message; the text has the reason."""


def encode(message: BaseModel | dict[str, Any], media_type: str) -> bytes:
    """Encode a model, or a dict that holds arrays and models, as bytes of `MSGPACK` or `JSON`."""
    if media_type == MSGPACK:
        import msgpack

        data = msgpack.packb(message, default=_packable)
        assert data is not None
        return data
    return json.dumps(message, default=_jsonable, allow_nan=False, separators=(',', ':')).encode()


def decode(body: bytes, media_type: str) -> Any:
    """Decode bytes; arrays are read-only (msgpack) or nested lists. Raises MalformedError."""
    return _decode_msgpack(body) if media_type == MSGPACK else _decode_json(body)


def _packable(value: Any) -> Any:
    import msgpack

    if isinstance(value, np.ndarray):
        if value.dtype.str not in DTYPES:
            raise TypeError(f'an array of dtype {value.dtype} cannot be sent')
        data = np.ascontiguousarray(value).data if value.size else b''
        return msgpack.ExtType(ARRAY_CODE, msgpack.packb([value.dtype.str, value.shape, data]))
    return _plain(value)


def _jsonable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _without_nan(value.tolist()) if not np.isfinite(value).all() else value.tolist()
    return _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f'{type(value).__name__} cannot be sent: {reprlib.repr(value)}')


def _without_nan(items: Any) -> Any:
    if isinstance(items, list):
        return [_without_nan(item) for item in items]
    return items if math.isfinite(items) else None


def _decode_msgpack(body: bytes) -> Any:
    import msgpack

    most = min(len(body), MAX_ITEMS)  # a short body cannot reserve room for many items
    left, arrays_left = _MAX_ITEMS_IN_ALL, _MAX_ARRAYS

    def extension(code: int, data: bytes) -> NDArray[Any]:
        nonlocal arrays_left
        arrays_left -= 1
        if arrays_left < 0:
            raise MalformedError(f'more than {_MAX_ARRAYS} arrays')
        return _array(code, data)

    def counted(items: Any) -> Any:
        nonlocal left
        left -= len(items) + 1
        if left < 0:
            raise MalformedError(f'more than {_MAX_ITEMS_IN_ALL} items: send numbers as arrays')
        return items

    try:
        return msgpack.unpackb(
            body, ext_hook=extension, list_hook=counted, object_hook=counted, max_array_len=most, max_map_len=most
        )
    except MalformedError:
        raise
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise MalformedError(f'not a msgpack message: {_reason(error)}') from None


def _array(code: int, data: bytes) -> NDArray[Any]:
    """Decode an array from its extension type, read-only."""
    import msgpack

    if code != ARRAY_CODE:
        raise MalformedError(f'msgpack extension type {code} is unknown; arrays are type {ARRAY_CODE}')
    try:
        dtype, shape, values = msgpack.unpackb(data, max_array_len=MAX_DIMS, max_map_len=0, max_ext_len=0)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise MalformedError(f'an array must be [dtype, shape, bytes]: {_reason(error)}') from None
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise MalformedError(f'array of dtype {reprlib.repr(dtype)}: expected one of {", ".join(sorted(DTYPES))}')
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise MalformedError(f'array of shape {reprlib.repr(shape)}: expected a list of sizes')
    kind = np.dtype(dtype)
    if not isinstance(values, bytes) or math.prod(shape) * kind.itemsize != len(values):
        size = len(values) if isinstance(values, bytes) else reprlib.repr(values)
        raise MalformedError(f'array of dtype {dtype} and shape {reprlib.repr(shape)}: got {size} bytes')
    if kind.kind == 'b' and values.translate(None, b'\0\1'):
        raise MalformedError('array of bools: expected bytes 0 and 1')
    try:
        return np.frombuffer(values, kind).reshape(shape)
    except ValueError as error:  # of no items, but with a side beyond all bounds
        raise MalformedError(f'array of shape {reprlib.repr(shape)}: {error}') from None


def _decode_json(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), parse_constant=_refuse_constant)
    except MalformedError:
        raise
    except (ValueError, RecursionError) as error:
        raise MalformedError(f'not a JSON message: {_reason(error)}') from None


def _refuse_constant(name: str) -> None:
    raise MalformedError(f'not a JSON message: {name} is no JSON number')


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
