"""Configs whose class is found by their `type`.

Each direct subclass of `TypedCfg` (`RobotCfg`, `TaskCfg`, ...) founds a family. A subclass that gives `type` a default
is registered there, so that a mapping read from JSON or YAML becomes the class that its `type` names:

    class SpotRobotCfg(RobotCfg):
        type: str = 'SpotRobot'
        arm: bool = False

    spot = {'type': 'SpotRobot', 'name': 'spot', 'prim_path': '/spot', 'arm': True}
    TaskCfg(robots=[spot]).robots[0]  # a SpotRobotCfg

A `type` that no class is registered for is first looked up in installed packages (entry points of the group
`internutopia.configs` name the modules to import); failing that, the mapping becomes the family's base class, which
keeps all fields.
"""

import functools
import importlib.metadata
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)
from typing_extensions import override

from internutopia.config.base import BaseCfg
from internutopia.util import did_you_mean, log, near_name
from internutopia.util.log import warn_once


class TypedCfg(BaseCfg):
    """A config whose `type` names the registered class that it configures.

    The base class of a family keeps unknown fields. Its subclasses refuse them, unless `open_subclasses` is set there.
    """

    model_config = ConfigDict(extra='allow')

    open_subclasses: ClassVar[bool] = False
    """True if subclasses keep unknown fields, too."""

    _classes: ClassVar[dict[str, dict[str, type['TypedCfg']]]] = {}  # of a family: type -> full class name -> class

    @classmethod
    @override
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        if TypedCfg in cls.__bases__:
            cls._classes = {}
        elif isinstance(name := cls.model_fields['type'].default, str):
            # A class that is defined again (module or notebook cell run again) takes the place of its former self.
            cls._classes.setdefault(name, {})[f'{cls.__module__}.{cls.__qualname__}'] = cls

    @classmethod
    @override
    def keeps_unknown_fields(cls) -> bool:
        return super().keeps_unknown_fields() and (cls.open_subclasses or TypedCfg in cls.__bases__)

    @model_validator(mode='after')
    def _warn_of_near_names(self) -> Self:
        for name in self.model_extra or ():
            if meant := near_name(name, type(self).model_fields):
                warn_once('%s has no field %r, it is kept as data; did you mean %r?', type(self).__name__, name, meant)
        return self

    @classmethod
    def class_for(cls, values: dict[str, Any]) -> type[Self]:
        """Find the config class for a mapping.

        Args:
            values: Fields of a config, `type` among them.

        Returns:
            Of the classes with that `type`, the first that declares every field given, else the first of all; the
            family's base class when there is none.
        """
        name = values.get('type')
        if not isinstance(name, str):
            return cls
        if name not in cls._classes:
            import_config_packages()
        candidates = cast(list[type[Self]], list(cls._classes.get(name, {'': cls}).values()))
        return next((each for each in candidates if values.keys() <= each.model_fields.keys()), candidates[0])

    @classmethod
    def from_items(cls, items: Any) -> Any:
        """Turn each mapping in a list into the config that its `type` names; configs and None stay as they are.

        ValueError if it is one config alone, or text.
        """
        if isinstance(items, BaseModel | Mapping | str):
            raise ValueError(f'expected a list of configs, got one {type(items).__name__}: put it in a list, [...]')
        return items if items is None else _items_adapter(cls).validate_python(items)

    @classmethod
    def _from_item(cls, item: Any) -> Any:
        if isinstance(item, str):
            raise ValueError(
                f'expected a {cls.__name__}, or in a file a mapping such as {{type: ...}}, got {item!r:.80}'
            )
        if not isinstance(item, dict):
            return item
        found = cls.class_for(item)
        try:
            return found.model_validate(item)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False)
            needed = [str(fault['loc'][0]) for fault in faults if fault['type'] == 'missing' and len(fault['loc']) == 1]
            if found is not cls or 'type' not in item or not needed:
                raise
            raise ValueError(
                f'no config class has the type {item["type"]!r}; {did_you_mean(item["type"], cls._classes)} '
                f'(A type without a config class of its own needs {" and ".join(needed)}.)'
            ) from None


def items_by_type(field: str, family: type[TypedCfg]) -> Any:
    """Make the validator of a list field: mappings in it become configs of `family`, of the classes that they name.

    Validators are inherited, so this holds for the field of a subclass that declares it again, too.
    """
    return field_validator(field, mode='before')(lambda items: family.from_items(items))


@functools.cache
def _items_adapter(family: type[TypedCfg]) -> TypeAdapter[list[TypedCfg]]:
    return TypeAdapter(list[Annotated[family, BeforeValidator(family._from_item)]])  # pyright: ignore[reportInvalidTypeForm]


@functools.cache
def import_config_packages() -> None:
    """Import, once, the config modules that installed packages announce; one that fails costs a warning."""
    for entry_point in importlib.metadata.entry_points(group='internutopia.configs'):
        try:
            entry_point.load()
        except ImportError as error:
            log.warning(
                "the configs of the package behind entry point '%s' cannot be loaded: %s", entry_point.name, error
            )
