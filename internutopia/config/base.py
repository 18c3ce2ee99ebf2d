"""Base class of all configs, and field types that several share. Tuples are also accepted as lists and arrays.

Configs are mutable pydantic models. A mistake is found when one is built: an unknown field is a `ValidationError` that
names the field and its close matches, unless the class keeps unknown fields (see it). A dump keeps the fields of
subclasses: `cfg.model_dump()` and `cfg.model_dump_json()` lose nothing that the config holds.
"""

import math
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    FiniteFloat,
    PlainSerializer,
    ValidationError,
    WrapValidator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError
from typing_extensions import override

from internutopia.util import did_you_mean
from internutopia.util.bounds import MAX_COUNT, MAX_DISTANCE, MAX_SEED, MAX_SIDE

_LENGTHS = 1e-15, 1e15  # of quaternions; MuJoCo takes shorter ones as of length zero


def _numbers(form: str) -> BeforeValidator:
    """Return the validator of a tuple of numbers; `form` is an example, with a number for each comma and one more."""
    length = form.count(',') + 1

    def as_list(value: Any) -> Any:
        items = value.tolist() if hasattr(value, 'tolist') else value
        if not isinstance(items, list | tuple) or len(items) != length:
            raise ValueError(f'expected {length} numbers {form}, got {value!r:.80}')
        return items

    return BeforeValidator(as_list)


def _not_zero(quaternion: tuple[float, ...]) -> tuple[float, ...]:
    length = math.hypot(*quaternion)
    if not _LENGTHS[0] <= length <= _LENGTHS[1]:
        name = 'zero' if length < _LENGTHS[0] else f'{length:.1g}'
        raise ValueError(f'a quaternion of length {name} is not an orientation; (1, 0, 0, 0) means not rotated')
    return quaternion


def _ordered(ends: tuple[float, float]) -> tuple[float, float]:
    if ends[0] > ends[1]:
        raise ValueError(f'{ends[0]:g} to {ends[1]:g} is no range: the lower end comes first')
    return ends


def _not_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError('expected a number, got a bool')
    return value


def _as_path(value: Any) -> Any:
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _metres_or_auto(value: Any, as_metres: Callable[[Any], float]) -> Any:
    if isinstance(value, str) and value != 'auto':
        raise ValueError(f"expected a number of metres or 'auto', got {value!r}")
    return value if isinstance(value, str) else as_metres(value)


def _as_seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    numerator, _, denominator = value.partition('/')
    try:
        return float(numerator) / float(denominator or 1)
    except (ValueError, ZeroDivisionError):
        raise ValueError("expected seconds, as a number or as a fraction such as '1/240'") from None


PositiveFloat = Annotated[FiniteFloat, Field(gt=0)]
NonNegativeFloat = Annotated[FiniteFloat, Field(ge=0)]
Share = Annotated[FiniteFloat, Field(ge=0, le=1)]

Range = Annotated[tuple[FiniteFloat, FiniteFloat], AfterValidator(_ordered)]
"""A range of numbers, lower end first; both ends may be the same."""

PositiveRange = Annotated[tuple[PositiveFloat, PositiveFloat], AfterValidator(_ordered)]
"""A range of positive numbers, lower end first; both ends may be the same."""

Vector = Annotated[tuple[FiniteFloat, FiniteFloat, FiniteFloat], _numbers('(x, y, z)')]
"""Three finite numbers: a position, a translation (m) or a colour."""

Scale = Annotated[tuple[PositiveFloat, PositiveFloat, PositiveFloat], _numbers('(x, y, z)')]
"""Three positive factors along x, y and z."""

Quaternion = Annotated[
    tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat], _numbers('(w, x, y, z)'), AfterValidator(_not_zero)
]
"""An orientation `(w, x, y, z)`, not of length zero."""

Count = Annotated[int, BeforeValidator(_not_bool), Field(ge=1, le=MAX_COUNT)]
"""A number of things: 1 or more."""

Seed = Annotated[int, BeforeValidator(_not_bool), Field(ge=0, le=MAX_SEED)]
"""A seed of random numbers."""

_Side = Annotated[int, BeforeValidator(_not_bool), Field(ge=1, le=MAX_SIDE)]

Resolution = Annotated[tuple[_Side, _Side], _numbers('(width, height)')]
"""Width and height of an image, pixels."""

if TYPE_CHECKING:  # what a caller may write; a config holds the number
    Seconds = float | str
    Bytes = int | str
    Spacing = float | Literal['auto']
else:
    Seconds = Annotated[PositiveFloat, BeforeValidator(_as_seconds)]
    Bytes = Annotated[ByteSize, BeforeValidator(_not_bool), Field(ge=0)]
    Spacing = Annotated[
        PositiveFloat, Field(le=MAX_DISTANCE), WrapValidator(_metres_or_auto), PlainSerializer(lambda value: value)
    ]
"""A time span, s: a number or a fraction written as text (`'1/240'`). A size in bytes: a number, or text (`'2GiB'`).
A distance between things, m: a number, or `'auto'` for one that follows from their size."""

PathStr = Annotated[str, BeforeValidator(_as_path)]
"""A path as text; `pathlib` paths are accepted."""


def _plain(value: Any) -> Any:
    """Return what to write for a value that pydantic cannot: numpy arrays and scalars become lists and numbers."""
    if hasattr(value, 'tolist'):
        return value.tolist()
    raise TypeError(
        f'a config with a value of type {type(value).__name__} cannot be written as JSON or YAML: {value!r}'
    )


class BaseCfg(BaseModel):
    """Base class of every config."""

    model_config = ConfigDict(
        extra='forbid',
        arbitrary_types_allowed=True,
        use_attribute_docstrings=True,
        ser_json_inf_nan='constants',
    )

    def update(self, **values: Any) -> Self:
        """Return a deep copy with some fields replaced; this config stays as it is.

        Args:
            **values: The fields to replace, checked as when the class is called. They are not copied.

        Raises:
            pydantic.ValidationError: A value is wrong or a field unknown.
        """
        return type(self).model_validate({**dict(self.model_copy(deep=True)), **values})

    @override
    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Dump the config as pydantic does, with the fields of subclasses; `mode='json'` makes numpy arrays lists."""
        if options.get('mode') == 'json':
            options.setdefault('fallback', _plain)
        return super().model_dump(**{'serialize_as_any': True, **options})

    @override
    def model_dump_json(self, **options: Any) -> str:
        """Dump the config as JSON, as pydantic does, with the fields of subclasses; numpy arrays become lists."""
        return super().model_dump_json(**{'serialize_as_any': True, 'fallback': _plain, **options})

    @classmethod
    @override
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        # A field that is declared again for another default still means the same.
        for base in filter(lambda base: issubclass(base, BaseCfg), cls.__bases__):
            for name, field in base.model_fields.items():
                cls.model_fields[name].description = cls.model_fields[name].description or field.description

    @classmethod
    def keeps_unknown_fields(cls) -> bool:
        """Return True if fields that the class does not declare are kept (as attributes) instead of refused."""
        return cls.model_config.get('extra') != 'forbid'

    @model_validator(mode='before')
    @classmethod
    def _refuse_unknown_fields(cls, values: Any) -> Any:
        # Before pydantic's own checks: a misspelt required field shall not be reported as missing only.
        if not isinstance(values, Mapping) or cls.keeps_unknown_fields():
            return values
        known = cls.model_fields.keys() | {field.alias for field in cls.model_fields.values() if field.alias}
        errors = []
        for name in [name for name in values if name not in known]:
            context = {'class': cls.__name__, 'name': name, 'hint': did_you_mean(name, known)}
            error = PydanticCustomError('unknown_field', "{class} has no field '{name}'; {hint}", context)
            errors.append(InitErrorDetails(type=error, loc=(name,), input=values[name]))
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return values
