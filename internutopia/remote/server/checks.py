"""Checks of a call against the envs, made before anything moves."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from internutopia.remote.protocol import StepEpisodes
from internutopia.remote.server.errors import invalid
from internutopia.remote.server.session import Session
from internutopia.remote.server.settings import Settings
from internutopia.remote.server.worker import Description

_FLOAT_BYTES = 4


def checked_step(
    session: Session, request: StepEpisodes, description: Description, settings: Settings
) -> NDArray[np.intp]:
    """Return the envs of a step, one per row. ServiceError if envs are missing or a limit is exceeded."""
    env_ids = session.env_ids(request.episode_ids)
    if len(env_ids) != session.num_envs:
        raise invalid(
            f'episode_ids: a step takes the episodes of all {session.num_envs} envs of the session, got {len(env_ids)}'
        )
    if request.step_size > settings.max_step_size:
        raise invalid(f'step_size: expected {settings.max_step_size} at most, got {request.step_size}')
    size = request.step_size * session.num_envs * description.observation_size * _FLOAT_BYTES
    if size > settings.max_reply:
        raise invalid(
            f'step_size: the observations of {request.step_size} steps of {session.num_envs} envs would be {size} '
            f'bytes, {settings.max_reply} is the most; make smaller steps'
        )
    return env_ids


def checked_actions(request: StepEpisodes, space: spaces.Box | spaces.Discrete) -> NDArray[Any]:
    """Return actions as the envs take them, `(m, a)` or choices `(m,)`. ServiceError names the first wrong one."""
    actions = request.actions
    width = space.shape or ()
    shape = (len(request.episode_ids), *width)
    if actions.shape != shape and not (width == (1,) and actions.shape == shape[:1]):
        raise invalid(f'actions: expected shape {shape}, got {actions.shape}')
    if isinstance(space, spaces.Discrete):
        wrong = ~((actions >= 0) & (actions < space.n) & (actions == np.floor(actions)))
        right = f'a choice 0 to {space.n - 1}'
    else:
        with np.errstate(over='ignore'):  # infinite then, which no box has
            actions = actions.astype(np.float32).reshape(shape)
        wrong = ~(np.isfinite(actions) & (actions >= space.low) & (actions <= space.high)).all(axis=-1)
        right = f'finite numbers from {_short(space.low)} to {_short(space.high)}'
    if wrong.any():
        row = int(np.argmax(wrong))
        episode_id = request.episode_ids[row]
        raise invalid(f'actions[{row}], of episode {episode_id}: expected {right}, got {_short(actions[row])}')
    return actions.astype(space.dtype, copy=False)


def _short(values: NDArray[Any]) -> str:
    return reprlib.repr(values.tolist())
