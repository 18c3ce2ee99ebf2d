"""Base class of all configs.

Configs are mutable pydantic models. A mistake is found when one is built: an unknown field is a `ValidationError` that
names the field and its close matches, unless the class keeps unknown fields (see it). A dump keeps the fields of
subclasses: `cfg.model_dump()` and `cfg.model_dump_json()` lose nothing that the config holds.
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError
from typing_extensions import override

from internutopia.util import did_you_mean


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
