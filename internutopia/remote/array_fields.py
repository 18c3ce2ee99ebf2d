"""Array fields of the messages: annotations that turn lists into arrays, and check what a client sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    ConfigDict,
    FailFast,
    FiniteFloat,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
)
from pydantic_core import CoreSchema, core_schema

from internutopia.util.encoding import MAX_ITEMS

_Vector = Annotated[list[FiniteFloat], FailFast()]
_VECTOR = TypeAdapter(_Vector, config=ConfigDict(strict=True))
_MATRIX = TypeAdapter(Annotated[list[_Vector], FailFast()], config=ConfigDict(strict=True))


@dataclass(frozen=True)
class ArrayOf:
    """Annotation of an array field: its dtype and number of dimensions; lists become arrays.

    Reads null as NaN, and the rows of a list without rows as empty. With `given` the client sends the array: numbers of
    any dtype (no bools in lists), all finite where they come in lists.
    """

    dtype: str
    dims: tuple[int, ...]
    given: bool = False

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: D102
        return core_schema.no_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:  # noqa: D102
        kind = {'b': 'boolean', 'i': 'integer', 'u': 'integer', 'f': 'number'}[np.dtype(self.dtype).kind]
        item: dict[str, Any] = {'type': kind if self.given or kind != 'number' else [kind, 'null']}
        choices = []
        for dims in self.dims:
            nested = item
            for _ in range(dims):
                nested = {'type': 'array', 'items': nested}
            choices.append(nested | ({'maxItems': MAX_ITEMS} if self.given else {}))
        return choices[0] if len(choices) == 1 else {'anyOf': choices}

    def _validate(self, value: Any) -> NDArray[Any]:
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in 'iuf' and (self.given or value.dtype != self.dtype):
                raise ValueError(f'expected an array of numbers, got dtype {value.dtype}')
        elif not isinstance(value, list):
            raise ValueError(f'expected an array, got {type(value).__name__}')
        elif self.given:
            if len(value) > MAX_ITEMS:
                raise ValueError(f'expected {MAX_ITEMS} rows at most, got {len(value)}')
            numbers = _MATRIX if value and isinstance(value[0], list) else _VECTOR
            try:
                value = np.array(numbers.validate_python(value), self.dtype)
            except ValueError:
                raise ValueError('expected finite numbers, one or a list of equally many for each row') from None
        else:
            value = np.array(value, self.dtype)
            if not value.size:
                value = value.reshape((*value.shape, *(0 for _ in range(self.dims[0] - value.ndim))))
        if value.ndim not in self.dims:
            raise ValueError(f'expected {" or ".join(map(str, self.dims))} dimensions, got shape {value.shape}')
        return value


Bools = Annotated[NDArray[np.bool_], ArrayOf('?', (1,))]
Ints = Annotated[NDArray[np.int64], ArrayOf('<i8', (1,))]
Floats = Annotated[NDArray[np.float32], ArrayOf('<f4', (1,))]
Doubles = Annotated[NDArray[np.float64], ArrayOf('<f8', (1,))]
Matrix = Annotated[NDArray[np.float32], ArrayOf('<f4', (2,))]
DoubleMatrix = Annotated[NDArray[np.float64], ArrayOf('<f8', (2,))]
Octets = Annotated[NDArray[np.uint8], ArrayOf('|u1', (1,))]
Pixels = Annotated[NDArray[np.uint8], ArrayOf('|u1', (3,))]
Numbers = Annotated[NDArray[Any], ArrayOf('<f8', (1, 2), given=True)]
"""Array sent by a client: `(m,)` or `(m, k)`, of any numeric dtype."""
