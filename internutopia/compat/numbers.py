"""Arguments that callers of stand-ins pass: one check for all of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

CallT = TypeVar('CallT', bound=Callable[..., Any])

_COUNTS = {  # numbers of an argument, by its name
    **dict.fromkeys(('static_friction', 'dynamic_friction', 'restitution', 'mass', 'density', 'z_position'), 1),
    **dict.fromkeys(('size', 'radius', 'height', 'physics_dt', 'rendering_dt', 'stage_units_in_meters'), 1),
    **dict.fromkeys(('position', 'translation', 'scale', 'color', 'linear_velocity', 'angular_velocity'), 3),
    **dict.fromkeys(('robot_position', 'target_position'), 3),
    **dict.fromkeys(('orientation', 'robot_orientation', 'target_orientation'), 4),
}
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    'prim_path': ('a string', lambda value: isinstance(value, str)),
    'name': ('a string', lambda value: isinstance(value, str)),
    'prim_paths_expr': (
        'a string or strings',
        lambda value: isinstance(value, Sequence) and all(isinstance(each, str) for each in value),
    ),
    'visual_material': ('a VisualMaterial', lambda value: hasattr(value, 'get_color')),
    'physics_material': ('a PhysicsMaterial', lambda value: hasattr(value, 'get_dynamic_friction')),
}

_NEEDED = 'prim_path', 'prim_paths_expr'


def checks_arguments(method: CallT) -> CallT:
    """Decorate a method of Isaac Sim's: arguments that are given and not None are of the kind of their name.

    Numbers are passed on as floats and arrays. One number is a scale for all axes; the opacity of a color is left out.

    Raises:
        ValueError: Not a finite number, or another number of them; the message names prim path or class, and argument.
        TypeError: Not a string, or not a material.
    """
    names = list(inspect.signature(method).parameters)

    @functools.wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        owner = vars(args[0]).get('prim_path', type(args[0]).__name__)  # no path yet if it is being made
        positional = [_checked(owner, *each) for each in zip(names, args, strict=False)]
        by_name = {name: _checked(owner, name, value) for name, value in kwargs.items()}
        return method(*positional, *args[len(names) :], **by_name)

    return cast('CallT', checked)


def _checked(owner: str, name: str, value: Any) -> Any:
    if name in _KINDS and (value is not None or name in _NEEDED):
        kind, holds = _KINDS[name]
        if not holds(value):
            raise TypeError(f'{owner}: {name} must be {kind}, got {value!r}')
    if name not in _COUNTS or value is None:
        return value
    count, numbers = _COUNTS[name], value
    if name == 'scale' and np.isscalar(value):
        numbers = count * [value]
    elif name == 'color' and np.shape(value) == (4,):
        numbers = value[:count]
    checked = checked_numbers(f'{owner}: {name}', numbers, count)
    return float(checked[0]) if count == 1 else checked


def checked_numbers(what: str, values: Any, count: int) -> NDArray[np.float64]:
    """Return `count` finite numbers as an array `(count,)`; else ValueError that begins with `what`."""
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)  # which no count allows
    numbers = numbers[None] if count == 1 else numbers
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ValueError(
            f'{what} must be {"a finite number" if count == 1 else f"{count} finite numbers"}, got {values!r}'
        )
    return numbers
