"""Interactions, what a person does with a device, for scripts to read: base class and registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from internutopia.core.registry import register_in


class BaseInteraction(ABC):
    """A device that a person uses."""

    interactions: ClassVar[dict[str, type[BaseInteraction]]] = {}

    @classmethod
    def register(cls, name: str) -> Callable[[Any], Any]:
        """Class decorator: make the class the implementation of interaction type `name`."""
        return register_in(BaseInteraction.interactions, name)

    @property
    def type(self) -> str:
        """The name that the class is registered under; that of the class if it is not."""
        names = (name for name, cls in BaseInteraction.interactions.items() if cls is type(self))
        return next(names, type(self).__name__)

    @abstractmethod
    def get_input(self) -> np.ndarray:
        """Return the current input of the device."""
