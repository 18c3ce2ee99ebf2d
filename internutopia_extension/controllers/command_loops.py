"""Command loops of walking controllers: from commanded speeds to those that a policy is given, for all envs at once.

Each is a closed loop with a state per env, for the envs of a selection: `loop(selection, command, recent)` returns
commands `(m, 3)` [m/s, m/s, rad/s], which may be beyond those that the policy was trained on. `recent` is False where
the policy did not act for a while, so that what the loop knows is out of date.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from typing_extensions import override

from internutopia.config.learning import ObservationTermCfg
from internutopia.engines.env_selection import EnvSelection
from internutopia.rl.state import RobotState
from internutopia.rl.terms.gait import MID_STRIDE, STANDING
from internutopia.rl.terms.observations import phase
from internutopia.util.rotations import length, wrap_angle, yaw_of
from internutopia_extension.controllers.ground_controllers import speeds_to, strays

_HEADING_RATE = 1.5  # [1/s], turning rate per heading error, of a robot that holds its heading
_FASTEST_TURN = 0.4  # [rad/s], with which it turns back
_TURNING = 0.05  # [rad/s], from where on a command means to turn
_LOST = 0.5  # [rad], from the heading, of a robot that was turned by something: it holds that heading then
_SETTLES = 1.0  # [s], after a command to stand, before a robot holds the spot that it stands on
_SPOT = 0.05  # [m, rad]: a robot that is further than 1.6 times this from its spot goes back
_PUSHED = 0.5  # [m], from the spot, of a robot that was carried away: it holds the place where it is then
_END = MID_STRIDE, 0.7  # of a stride (half a gait period), from where until where a walk may end
_SLOWEST = 0.12  # [m/s, m/s, rad/s], until it ends


class CommandLoop(ABC):
    """A loop with a state per env.

    Attributes:
        memory: arrays of that state, a row per env.
        starts: what they start with, a value each.
    """

    memory: list[Any]
    starts: tuple[float, ...]

    def __init__(self, state: RobotState, step_dt: float):
        self._state, self._step_dt, self._xp = state, step_dt, state.xp

    @abstractmethod
    def __call__(self, selection: EnvSelection, command: Any, recent: Any) -> Any:
        """Return the commands for the policy `(m, 3)`."""

    def reset(self, rows: Any) -> None:
        """Forget these envs."""
        for array, start in zip(self.memory, self.starts, strict=True):
            array[rows] = start


class HeadingHold(CommandLoop):
    """A robot that is commanded to walk without a turn turns back to the heading that it had when that began."""

    starts = (np.nan,)

    def __init__(self, state: RobotState, step_dt: float):
        super().__init__(state, step_dt)
        self._heading = state.arrays.zeros(state.env_num) + np.nan  # that is held [rad]; NaN where none is
        self.memory = [self._heading]

    @override
    def __call__(self, selection: EnvSelection, command: Any, recent: Any) -> Any:
        xp, yaw = self._xp, selection.take(yaw_of(self._state.base_orientation))
        walks = (length(command[:, :2]) >= STANDING) & (xp.abs(command[:, 2]) < _TURNING)
        error = wrap_angle(selection.take(self._heading) - yaw)
        error = xp.where(walks & recent & (xp.abs(error) < _LOST), error, 0.0)  # NaN is no error
        selection.put(self._heading, xp.where(walks, yaw + error, xp.nan))
        turn = (_HEADING_RATE * error).clip(-_FASTEST_TURN, _FASTEST_TURN)
        return xp.stack([command[:, 0], command[:, 1], command[:, 2] + turn], axis=-1)


class SpotHold(CommandLoop):
    """A robot that is commanded to stand goes back to the spot and the heading that it has after a second."""

    starts = (0.0, 0.0, False)

    def __init__(self, state: RobotState, step_dt: float):
        super().__init__(state, step_dt)
        zeros, n = state.arrays.zeros, state.env_num
        self._stood = zeros(n)  # how long it has been commanded to stand [s]
        self._spot = zeros((n, 3))  # x, y [m] and heading [rad] that are held then
        self._strayed = zeros((n, 2), 'bool')  # whether it goes, and turns, back to them
        self.memory = [self._stood, self._spot, self._strayed]

    @override
    def __call__(self, selection: EnvSelection, command: Any, recent: Any) -> Any:
        state, xp = self._state, self._xp
        stands = length(command) < STANDING
        stood = xp.where(stands & recent, selection.take(self._stood) + self._step_dt, 0.0)
        selection.put(self._stood, stood)
        if not state.arrays.on_device and not stands.any():
            return command
        yaw = selection.take(yaw_of(state.base_orientation))
        pose = xp.concat([selection.take(state.base_position)[:, :2], yaw[:, None]], axis=-1)
        spot = selection.take(self._spot)
        holds = (stood > _SETTLES) & (length((spot - pose)[:, :2]) < _PUSHED)
        spot = xp.where(holds[:, None], spot, pose)
        way, turn = (spot - pose)[:, :2], wrap_angle(spot[:, 2] - yaw)
        strayed = strays(selection.take(self._strayed), xp.stack([length(way), xp.abs(turn)], axis=-1), _SPOT)
        selection.put(self._spot, spot)
        selection.put(self._strayed, strayed)
        speeds = xp.where(strayed[:, :1], speeds_to(way, yaw), 0.0)
        rate = xp.sign(turn) * (_HEADING_RATE * xp.abs(turn)).clip(STANDING, _FASTEST_TURN)
        rate = xp.where(strayed[:, 1], rate, 0.0)
        return command + xp.concat([speeds, rate[:, None]], axis=-1)


class WholeStrides(CommandLoop):
    """A biped whose gait's clock does not stop begins and ends its walks in the middle of a stride.

    The clock starts there, unless the robot stood for less than a period, so that it may still be moving. The foot that
    is on the side of a sidestep goes first.
    """

    starts = (np.inf,)  # it does not walk

    def __init__(self, state: RobotState, step_dt: float, clock: ObservationTermCfg, command: str):
        super().__init__(state, step_dt)
        self._period, self._command = clock.params['period'], command
        self._stood = state.arrays.zeros(state.env_num)  # how long the policy has been commanded to stand [s]
        self.memory = [self._stood]

    @override
    def __call__(self, selection: EnvSelection, command: Any, recent: Any) -> Any:
        state, xp = self._state, self._xp
        steps = selection.take(state.steps)
        stood = xp.where(recent, selection.take(self._stood), np.inf)
        walks, strides = length(command) >= STANDING, 0.5 * self._period / self._step_dt  # in steps of the policy
        first = xp.astype((MID_STRIDE + (command[:, 1] > 0.0)) * strides, steps.dtype)
        steps = xp.where(walks & (stood >= self._period), first, steps)
        selection.put(state.steps, steps)
        progress = steps / strides
        progress = progress - xp.floor(progress)
        goes_on = (stood == 0.0) & ~walks & ((progress < _END[0]) | (progress > _END[1]))
        last = selection.take(state.commands[self._command])
        slow = last * (_SLOWEST / length(last).clip(min=_SLOWEST))[:, None]
        selection.put(self._stood, xp.where(walks | goes_on, 0.0, stood + self._step_dt))
        return xp.where(goes_on[:, None], slow, command)


class LastStride(CommandLoop):
    """A gait's clock that stops while a robot stands continues for a period after a command to stand.

    If it stopped in the middle of a stride, quadrupeds would fall. Commands stay as they are.
    """

    starts = (np.inf,)  # it does not walk

    def __init__(self, state: RobotState, step_dt: float, clock: ObservationTermCfg):
        super().__init__(state, step_dt)
        self._clock = clock
        self._stood = state.arrays.zeros(state.env_num)  # how long the policy has been commanded to stand [s]
        self.memory = [self._stood]

    @override
    def __call__(self, selection: EnvSelection, command: Any, recent: Any) -> Any:
        stood = self._xp.where(length(command) < STANDING, selection.take(self._stood) + self._step_dt, 0.0)
        selection.put(self._stood, stood)
        return command

    def observed(self, selection: EnvSelection, observations: Any, end: int) -> Any:
        """Return observations `(m, dim)` with that clock; its cosine and sine end before the column `end`."""
        state, xp, params = self._state, self._xp, self._clock.params
        stood = selection.take(self._stood)
        now = selection.take(phase(state, params['period'], params.get('alternating', True)))
        goes_on = (stood > 0.0) & (stood < params['period'])
        scaled = xp.astype(now * state.arrays.asarray(self._clock.scale), observations.dtype)
        stride = xp.where(goes_on[:, None], scaled, observations[:, end - 2 : end])
        return xp.concat([observations[:, : end - 2], stride, observations[:, end:]], axis=-1)
