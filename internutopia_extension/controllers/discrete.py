"""Discrete actions: stop, a step forward, a turn to the left, a turn to the right."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.core.robot.context import RobotContext
from internutopia.core.robot.controller import BaseController, box_action
from internutopia.core.scene.scene import IScene
from internutopia_extension.configs.controllers import DiscreteControllerCfg
from internutopia_extension.controllers.navigation import observed

if TYPE_CHECKING:
    import gymnasium

STOP, FORWARD, LEFT, RIGHT = range(4)
"""Actions, by the numbers of Habitat and VLN-CE."""
_MEANING = ' (0 stop, 1 forward, 2 left, 3 right)'
TURNS = np.array([0.0, 0.0, 1.0, -1.0])
"""Turn of each action, as a multiple of the angle of a turn to the left."""


class DiscreteController(BaseController):
    """A controller whose action is `[k]`: 0 stop, 1 forward, 2 left, 3 right. The nearest whole number counts.

    Observation:

    - `finished`: whether the action has come to its end; the next one can be sent. False before the first.
    - `stopped`: whether the action was to stop.
    - `actions`: number of actions that have begun.
    - `collided`: whether something was in the way of the action.
    """

    def __init__(self, config: DiscreteControllerCfg, robot: RobotContext, scene: IScene):
        super().__init__(config, robot, scene)
        self.forward_distance = config.forward_distance
        self.turn_angle = config.turn_angle
        self.action = self.state((), -1, np.int64)
        self.actions = self.state((), 0, np.int64)

    @override
    def parse_action(self, action: Any) -> NDArray[np.float32]:
        """Check one env's action `(1,)`. ValueError with the expected and the given value.

        Of an array, as a learner gives it, every number counts as the nearest action.
        """
        number = box_action(action, (1,), _MEANING)
        if not isinstance(action, np.ndarray) and not STOP <= round(float(number[0])) <= RIGHT:
            raise ValueError(f'expected 1 number from 0 to 3{_MEANING}, got {action!r}')
        return number

    def numbers_of(self, action: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return the actions `(...)` for numbers `(..., 1)`: the nearest."""
        return np.clip(np.rint(action[..., 0]), STOP, RIGHT).astype(np.int64)

    @abstractmethod
    def finished(self) -> NDArray[np.bool_]:
        """Return True where the action of an env has ended `batch_shape`."""

    @abstractmethod
    def collided(self) -> NDArray[np.bool_]:
        """Return True where the action of an env was obstructed `batch_shape`."""

    @override
    def get_obs(self) -> dict[str, Any]:
        """Return the state of the action."""
        return {
            'finished': observed(self.finished()),
            'stopped': observed(self.action == STOP),
            'actions': observed(self.actions),
            'collided': observed(self.collided()),
        }

    @override
    def action_space(self) -> gymnasium.Space[Any]:
        """Numbers from 0 to 3."""
        from gymnasium.spaces import Box

        return Box(STOP, RIGHT, (1,))
