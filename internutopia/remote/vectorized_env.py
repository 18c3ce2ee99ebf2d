"""Remote envs for a loop that resets ended envs itself, with the observations of all steps.

env = create_vectorized_env(num_envs=4, step_size=10, user_token='...')
observations, infos = env.reset()
while env.get_active_count():
    observations, rewards, terminateds, truncateds, infos = env.step(actions)
    ended = env.get_terminated_env_indices()
    first_observations, first_infos = env.reset_specific_envs(ended)
env.close()
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from internutopia.remote import protocol
from internutopia.remote.client import DEFAULT_TIMEOUT
from internutopia.remote.remote_session import DEFAULT_URL, RemoteSession
from internutopia.rl.checks import check_open
from internutopia.util.call_guard import CallGuard, closing, exclusive

if TYPE_CHECKING:
    from internutopia.core.runner.interfaces import WorkerEnvs

logger = logging.getLogger(__name__)

Array = NDArray[np.float32]
Bools = NDArray[np.bool_]
Infos = list[dict[str, Any]]


def create_vectorized_env(
    num_envs: int,
    step_size: int = 1,
    user_token: str | None = None,
    base_url: str = DEFAULT_URL,
    session_id: str | None = None,
    *,
    seed: int | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> RemoteVectorizedEnv:
    """Create envs on a server.

    Args:
        num_envs: number of envs.
        step_size: maximum number of steps of a call of `step`.
        user_token: of the user; None for a server without users.
        base_url: of the server.
        session_id: of a live session with as many envs, to resume it; None creates a new one.
        seed: of everything random in a new session; None means that of the served config.
        timeout: longest time of a call, with everything that is tried again [s].

    Raises:
        VersionMismatchError: this client is too old or too new for the server.
        RemoteError: a subclass of it: no such session, a limit, a wrong token, no server.
        ValueError: the session has another number of envs, or an argument is wrong.
    """
    session = RemoteSession(
        num_envs, step_size, base_url, user_token, session_id=session_id, seed=seed, timeout=timeout
    )
    return RemoteVectorizedEnv(session, running=session_id is not None)


class RemoteVectorizedEnv:
    """Envs on a server; made by `create_vectorized_env`. Failed calls raise a subclass of `RemoteError`.

    An env whose episode is over stands still until it is reset. When the queue has no episode for it, it is no longer
    active: its observations are zero, or none, and it counts nowhere.

    Infos are one dict per env: `step` (steps of the episode so far), `terminated`, `truncated`, `active`, `episode`
    (its number in the queue, -1 for none), and after the call in which it ended `episode_return` and `episode_length`,
    and `failed` and `error` if the env failed.

    Attributes:
        num_envs: number of envs.
        step_size: maximum number of steps of a call of `step`.
        episode_ids: ids of the envs on the server, valid as long as the session.
        session_id: id of the session on the server; `create_vectorized_env(..., session_id=...)` resumes it.
        observation_size: numbers in an observation, k.
        single_action_space: actions of one env.
        step_dt: length of a step [s].
    """

    def __init__(self, session: RemoteSession, running: bool):
        self._guard = CallGuard(self)
        self._session = session
        self.num_envs, self.step_size = session.num_envs, session.step_size
        self.session_id, self.episode_ids = session.session_id, list(session.episode_ids)
        self.observation_size, self.step_dt = session.facts.observation_size, session.facts.step_dt
        self.single_action_space = session.action_space
        self._running = running  # whether there was a reset, at least in the life of the session before this object
        self._ended: Bools = np.zeros(self.num_envs, bool)
        self._active: Bools = np.full(self.num_envs, running)
        self._closed = False

    @property
    def workers(self) -> WorkerEnvs:
        """Workers for a viewer, see `internutopia.viewer.attach`. VersionMismatchError if it cannot show them."""
        from internutopia.remote.workers import RemoteWorkers

        return RemoteWorkers(self._session)

    @exclusive
    def reset(self, seed: int | None = None) -> tuple[Array, Infos]:
        """Start the next episodes in all envs: observations `(n, k)` and infos.

        A seed restarts everything random, and an endless order of episodes.
        """
        result = self._reset(list(range(self.num_envs)), seed)
        logger.info('Reset all envs (%d)', self.num_envs)
        return result

    @exclusive
    def reset_specific_envs(self, env_ids: Sequence[int]) -> tuple[Array, Infos]:
        """Start the next episodes in some envs: observations `(len(env_ids), k)` and infos, in their order.

        ValueError if an env does not exist or is listed twice; nothing is reset.
        """
        check_open(self._closed, 'reset_specific_envs')
        ids = [int(env_id) for env_id in env_ids]
        unknown = [env_id for env_id in ids if not 0 <= env_id < self.num_envs]
        if unknown:
            raise ValueError(f'there are no envs {unknown}, only 0 to {self.num_envs - 1}')
        if len(set(ids)) < len(ids):
            raise ValueError(f'env_ids must be distinct, got {ids}')
        if not ids:
            return np.zeros((0, self.observation_size), np.float32), []
        return self._reset(ids, None)

    @exclusive
    def step(self, actions: ArrayLike) -> tuple[list[Array], Array, Bools, Bools, Infos]:
        """Advance all envs by up to `step_size` steps with the same actions.

        Args:
            actions: `(n, a)`; `(n,)` for choices, or if an action is one number.

        Returns:
            Observations: one array per env, `(steps made, k)`; of an env that had ended before, its last one.
            Rewards `(n,)`, summed over the steps.
            Terminated and truncated `(n,)`, until the env is reset.
            Infos.

        Raises:
            ValueError: the actions are no numbers or (as `InvalidRequestError`) not what the server takes; no env has
                moved.
            RuntimeError: the envs were not reset yet, or are closed.
        """
        check_open(self._closed, 'step')
        if not self._running:
            raise RuntimeError('step: reset the envs first')
        values = np.asarray(actions)
        if values.dtype.kind not in 'iuf':
            raise ValueError(f'actions must be numbers, one row per env, got dtype {values.dtype}: {actions!r}')
        reply = self._session.step(values, 'disabled')
        self._active = reply.active.copy()
        self._ended = reply.terminated | reply.truncated
        rows = np.split(reply.observations.copy(), np.cumsum(reply.lengths)[:-1])
        return rows, reply.rewards.copy(), reply.terminated.copy(), reply.truncated.copy(), _infos(reply)

    def get_terminated_env_indices(self) -> list[int]:
        """Return the envs whose episode is over, terminated or truncated, and that were not reset since."""
        return np.flatnonzero(self._ended).tolist()

    def get_active_count(self) -> int:
        """Return the number of envs with a running episode."""
        return int((self._active & ~self._ended).sum())

    @closing
    def close(self, end_session: bool = True) -> None:
        """Free the envs, or leave the session for another client to resume; idempotent."""
        self._closed = True
        self._session.close(end_session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reset(self, env_ids: list[int], seed: int | None) -> tuple[Array, Infos]:
        check_open(self._closed, 'reset')
        reply = self._session.reset(env_ids, seed)
        self._running = True
        self._ended[env_ids] = False
        self._active[env_ids] = reply.active
        infos = [
            {'step': 0, 'terminated': False, 'truncated': False, 'active': active, 'episode': episode}
            for active, episode in zip(reply.active.tolist(), reply.episodes.tolist(), strict=True)
        ]
        return reply.observations.copy(), infos


def _infos(reply: protocol.StepReply) -> Infos:
    columns = {
        'step': reply.steps,
        'terminated': reply.terminated,
        'truncated': reply.truncated,
        'active': reply.active,
        'episode': reply.episodes,
    }
    infos = [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]
    for row in np.flatnonzero(reply.ended).tolist():
        infos[row]['episode_return'] = float(reply.episode_return[row])
        infos[row]['episode_length'] = int(reply.episode_length[row])
    for row, error in reply.errors.items():
        infos[row] |= {'failed': True, 'error': error}
    return infos
