"""The keyboard, read through the window of Isaac Sim."""

from __future__ import annotations

import numpy as np

from internutopia.core.util.absent import absent
from internutopia.core.util.interaction import BaseInteraction

_INSTEAD = 'read keys with a library of your choice, and send speeds to a move-by-speed controller'

__getattr__ = absent(__name__, {'KeyboardController': _INSTEAD})


@BaseInteraction.register('Keyboard')
class KeyboardInteraction(BaseInteraction):
    """Six keys of the window of Isaac Sim; there is no window here: NotImplementedError."""

    def __init__(self) -> None:
        raise NotImplementedError(f'KeyboardInteraction reads the window of Isaac Sim, there is none here: {_INSTEAD}')

    def get_input(self) -> np.ndarray:
        """Never called: there are no objects of this class."""
        raise NotImplementedError
