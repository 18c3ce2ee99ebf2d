"""Registries: from the `type` string in a config to the class that implements it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from internutopia.util import did_you_mean
from internutopia.util.conventions import GONE_NAMES

T = TypeVar('T', bound=type)


def register_in(registry: dict[str, Any], name: str) -> Callable[[T], T]:
    """Decorate a class to add it to a registry; a name registered twice means the later class."""

    def add(cls: T) -> T:
        registry[name] = cls
        return cls

    return add


def look_up(registry: Mapping[str, Any], kind: str, name: str | None) -> Any:
    """Return the class registered under a name. ValueError with close matches, or its replacement, if there is none."""
    if name is not None and name in registry:
        return registry[name]
    if not registry:
        raise ValueError(
            f'no {kind} type is registered; before the envs are made, add the line: '
            'from internutopia_extension import import_extensions; import_extensions()'
        )
    if name in GONE_NAMES[kind]:
        raise ValueError(GONE_NAMES[kind][name])
    raise ValueError(f'{kind} type {name!r} has no implementation here; {did_you_mean(name, registry)}')


def is_batched(cls: type) -> bool:
    """Return True if a class declares, in its own body, that one instance of it serves all envs (`batched = True`)."""
    return bool(cls.__dict__.get('batched', False))


def has_batched_form(cls: type, method: str, form: str) -> bool:
    """Return True if the class whose `method` this one has also defines its form for all envs, a class method."""
    owner = next(each for each in cls.__mro__ if method in vars(each))
    return form in vars(owner)


class OrderedKeys:
    """Mixin with upstream's `_make_ordered`: an observation in the key order of the first one."""

    obs_keys: list[str]

    def _make_ordered(self, obs: Mapping[str, Any] | None = None) -> OrderedDict[str, Any]:
        if not obs:
            return OrderedDict()
        if not self.obs_keys:
            self.obs_keys = list(obs)
        return OrderedDict((key, obs[key]) for key in self.obs_keys if key in obs)
