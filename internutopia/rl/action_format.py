"""Actions of a learner: the numbers that a controller takes, or the number of a row of `ActionCfg.choices`.

Everything with the array API checks actions with the same `ActionFormat`, before anything moves.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from internutopia.config.learning import ActionCfg, LearningCfg
from internutopia.core.robot.articulation_subset import ArticulationSubset
from internutopia.core.robot.controller import BaseController
from internutopia.engines.env_selection import EnvSelection
from internutopia.engines.views import LARGEST_NUMBER
from internutopia.rl.state import RobotState
from internutopia.util import did_you_mean
from internutopia.util.arrays import ArrayMaker, is_tensor, to_host
from internutopia.util.errors import EnvValueError


@dataclass(frozen=True)
class ActionFormat:
    """Checks a learner's actions and makes the controller's of them."""

    space: spaces.Box | spaces.Discrete
    """Actions of one env: a Box `(k,)`, or choices."""
    choices: NDArray[np.float32] | None = None
    """Action of the controller for each choice, `(n, k)`."""
    limits: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None
    """Least and greatest numbers `(k,)` that actions are clipped to; None takes them as they are."""

    @classmethod
    def of(cls, learning: LearningCfg, box: spaces.Box) -> ActionFormat:
        """Make the format of actions for a controller with this action space.

        ValueError if a row of `choices` has another length than the controller's actions, or is out of its limits.
        """
        cfg, clip = learning.action, learning.clip_actions
        low, high = (limit.ravel().astype(np.float32) for limit in (box.low, box.high))
        if cfg.choices is not None:
            return cls(spaces.Discrete(len(cfg.choices)), _table(cfg.choices, low, high, cfg.controller))
        if cfg.scale is not None:
            low, high = -np.ones_like(low), np.ones_like(high)
        limits = (low, high) if clip is True else (np.full_like(low, -clip), np.full_like(high, clip))
        return cls(spaces.Box(low, high, dtype=np.float32), limits=limits if clip else None)

    def array(self, actions: Any, *batch: int) -> NDArray[Any]:
        """Return actions as an array `(*batch, k)` of float32 or, of choices, `batch` of int64; copied only if need be.

        ValueError for another shape or what are no real numbers (integers).
        """
        shape = (*batch, *(self.space.shape or ()))
        name = 'actions' if batch else 'the action'
        kinds, numbers = ('iu', 'integers') if isinstance(self.space, spaces.Discrete) else ('biuf', 'real numbers')
        try:
            array = actions if isinstance(actions, np.ndarray) else np.asarray(to_host(actions))
        except ValueError as error:  # rows of different lengths
            raise ValueError(f'{name} must be an array of shape {shape}, got {reprlib.repr(actions)}') from error
        if array.dtype.kind not in kinds:
            raise ValueError(
                f'{name} must be an array of shape {shape} of {numbers}, got dtype {array.dtype}: '
                f'{reprlib.repr(actions)}'
            )
        if array.shape != shape:
            raise ValueError(f'{name} must have shape {shape}, got {array.shape}')
        if array.dtype == self.space.dtype:
            return array
        with np.errstate(over='ignore'):  # infinite then, and found by `check`
            return array.astype(self.space.dtype, copy=False)

    def check(
        self,
        actions: NDArray[Any],
        env_ids: NDArray[np.intp] | None = None,
        counts: NDArray[np.bool_] | Literal[True] = True,
    ) -> None:
        """Raise ValueError naming the first env whose action is not finite, too large or none of the choices.

        Args:
            actions: one row per env.
            env_ids: ids of the envs; None means that row i is env i.
            counts: rows to check, bool `(n,)`.
        """
        if isinstance(self.space, spaces.Discrete):
            wrong = (actions < 0) | (actions >= self.space.n)
            fault = f'is none of the choices 0 to {self.space.n - 1}'
        else:
            # no arrays in between where all is well; what is no number is never in between
            if not actions.size or (actions.min() >= -LARGEST_NUMBER and actions.max() <= LARGEST_NUMBER):
                return
            wrong = ~(np.abs(actions) <= LARGEST_NUMBER).all(axis=-1)
            fault = f'is not finite, or beyond {LARGEST_NUMBER:g}'
        wrong &= counts
        if wrong.any():
            row = int(np.argmax(wrong))
            env_id = row if env_ids is None else int(env_ids[row])
            raise EnvValueError(env_id, f'action of env {env_id} {fault}: {actions[row]}')

    def decode(self, actions: NDArray[Any]) -> NDArray[np.float32]:
        """Return the actions `(n, k)` for `ArrayRunner.step`, clipped; rows that are no choice become one."""
        if self.choices is not None:
            return self.choices.take(actions, axis=0, mode='clip')
        return actions if self.limits is None else np.clip(actions, *self.limits)

    def on_device(self, actions: Any, arrays: ArrayMaker, *batch: int) -> Any:
        """Return actions as a tensor `(*batch, k)` for `ArrayRunner.step`; NaN where they are none of the choices.

        ValueError for another shape or what are no real numbers (integers), but their values are not read.
        """
        if not is_tensor(actions):
            actions = self.array(actions, *batch)
        shape = (*batch, *(self.space.shape or ()))
        if tuple(actions.shape) != shape:
            raise ValueError(f'actions must have shape {shape}, got {tuple(actions.shape)}')
        discrete = isinstance(self.space, spaces.Discrete)
        kinds = ('integral',) if discrete else ('bool', 'integral', 'real floating')
        tensor = arrays.asarray(actions)
        if not arrays.xp.isdtype(tensor.dtype, kinds):
            what = 'integers' if discrete else 'real numbers'
            raise ValueError(f'actions must be a tensor of shape {shape} of {what}, got dtype {tensor.dtype}')
        if self.choices is None:
            values = arrays.asarray(tensor, 'float32')
            if self.limits is None:
                return values
            return arrays.xp.clip(values, *(arrays.constant(tuple(limit.tolist())) for limit in self.limits))
        wrong = (tensor < 0) | (tensor >= len(self.choices))
        chosen = arrays.constant(tuple(map(tuple, self.choices.tolist())))[tensor.clip(0, len(self.choices) - 1)]
        return arrays.xp.where(wrong[:, None], float('nan'), chosen)


def command(
    state: RobotState, controller: BaseController, shape: Sequence[int], scaled: bool, envs: EnvSelection
) -> None:
    """Apply a learner's actions in some envs through a controller.

    Args:
        state: of the robots, with the actions.
        controller: of the robots.
        shape: of its action in an env.
        scaled: whether actions are offsets from `state.action_offset`, in units of `state.action_scale`.
        envs: the envs.
    """
    actions, env_ids = envs.take(state.actions), envs.ids
    if scaled:
        actions = state.action_offset + state.action_scale * actions
    control = controller.action_to_control(actions.reshape(-1, *shape), env_ids)
    state.articulation.apply_action(control, env_ids)


def _table(
    choices: list[list[float]], low: NDArray[np.float32], high: NDArray[np.float32], controller: str
) -> NDArray[np.float32]:
    for index, choice in enumerate(choices):
        if len(choice) != len(low):
            raise ValueError(
                f'learning.action.choices[{index}] has {len(choice)} numbers, an action of controller {controller!r} '
                f'has {len(low)}'
            )
    table = np.array(choices, np.float32)
    outside = np.argwhere((table < low) | (table > high))
    if len(outside):
        row, column = outside[0]
        raise ValueError(
            f'learning.action.choices[{row}][{column}]={choices[row][column]} is out of the limits of controller '
            f'{controller!r}: {low[column]} to {high[column]}'
        )
    return table


def offset_and_scale(
    cfg: ActionCfg, joints: ArticulationSubset | None, size: int, home: NDArray[np.float32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return offset and scale of scaled actions, `(size,)` each.

    ValueError if the config names joints, or their home, where the controller drives none, or others.

    Args:
        cfg: what an action means.
        joints: those that the controller drives.
        size: length of the controller's actions.
        home: home positions of all joints of the robot `(dof,)` [rad or m].
    """
    offset, scale = np.zeros(size, np.float32), np.ones(size, np.float32)
    if cfg.offset != 'home':
        offset[:] = cfg.offset
    elif joints is None:
        raise ValueError(f"learning.action.offset='home': controller {cfg.controller!r} drives no joints by position")
    else:
        offset[:] = home[joints.joint_indices]
    if isinstance(cfg.scale, dict):
        scale[:] = _by_joint(cfg.scale, joints.joint_names if joints else [], cfg.controller)
    elif cfg.scale is not None:
        scale[:] = cfg.scale
    return offset, scale


def _by_joint(scale: Mapping[str, float], joints: Sequence[str], controller: str) -> list[float]:
    """Return a factor for each joint of a controller. ValueError naming a joint without one, or of none of its."""
    for name in scale:
        if name not in joints:
            hint = did_you_mean(name, joints)
            raise ValueError(f'learning.action.scale: controller {controller!r} drives no joint {name!r}; {hint}')
    for name in joints:
        if name not in scale:
            raise ValueError(f'learning.action.scale has no factor for joint {name!r} of controller {controller!r}')
    return [scale[name] for name in joints]
