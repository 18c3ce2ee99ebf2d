"""Actions of many envs as one array, without a loop where all of them have the same shape; observed values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Box, Space
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.controller import BaseController, box_action
from internutopia.engines.views import LARGEST_NUMBER
from internutopia.util.rotations import ZERO_LENGTH


def stack_actions(actions: Sequence[Any]) -> NDArray[np.float32] | None:
    """Stack actions as one array of numbers `(n, ...)`; None if shapes differ or `box_action` refuses one."""
    try:
        stacked = np.asarray(actions)
    except ValueError:  # shapes differ
        return None
    if stacked.dtype.kind not in 'biuf':
        return None
    with np.errstate(over='ignore'):  # too large for a float32: infinite
        stacked = stacked.astype(np.float32)
    return stacked if (np.abs(stacked) <= LARGEST_NUMBER).all() else None


def observed(value: NDArray[Any] | np.generic) -> Any:
    """Return a value `(*batch_shape)` for an observation: a plain Python value where there is no env axis."""
    return value if value.ndim else value.item()


def has_direction(quat: NDArray[np.float32]) -> bool:
    """Return True if a quaternion is not of length zero."""
    return math.hypot(*quat.ravel().tolist()) >= ZERO_LENGTH


def checks_as(cls: type[BaseController], base: type[BaseController]) -> bool:
    """Return True if a class checks actions as its base class does."""
    return cls.parse_action is base.parse_action and cls.parse_actions is base.parse_actions


class BoxActionController(BaseController):
    """A controller whose action is an array of `action_shape`; `action_meaning` describes it in error messages."""

    action_shape: tuple[int, ...]
    action_meaning: ClassVar[str]
    action_limits: ClassVar[float | tuple[float, ...]]
    """The largest numbers of the action space, of all or of each."""

    @classmethod
    @override
    def checks_signature_only(cls) -> bool:
        """Return True if a class checks as this one does: checks of a subclass may depend on more."""
        return checks_as(cls, BoxActionController)

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Check one env's action. ValueError with the expected and the given value."""
        return box_action(action, self.action_shape, f' ({self.action_meaning})')

    @override
    def parse_actions(self, actions: Sequence[Any]) -> NDArray[Any]:
        stacked = stack_actions(actions)
        if stacked is None or stacked.shape[1:] != self.action_shape:
            return super().parse_actions(actions)  # names the one at fault
        return stacked

    @override
    def action_space(self) -> Space[Any]:
        """Return the space of numbers up to `action_limits` each way."""
        limits = np.broadcast_to(np.array(self.action_limits, np.float32), self.action_shape)
        return Box(-limits, limits)
