"""Remote envs for learners: a `gymnasium.vector.VectorEnv` whose simulator is a server.

With `step_size=1` it is, bit for bit, `rl.VectorEnv` of the served config. With more, an action is held for so many
steps or until the episode ends; rewards are summed and the observation is the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector import VectorEnv as GymnasiumVectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from typing_extensions import override

from internutopia.remote import protocol
from internutopia.remote.client import DEFAULT_TIMEOUT
from internutopia.remote.remote_session import DEFAULT_URL, RemoteSession
from internutopia.rl.action_format import ActionFormat
from internutopia.rl.checks import check_open, checked_mask, checked_seed
from internutopia.util.call_guard import CallGuard, closing, exclusive

if TYPE_CHECKING:
    from internutopia.core.runner.interfaces import WorkerEnvs

Array = NDArray[np.float32]
Bools = NDArray[np.bool_]

_AUTORESETS: dict[AutoresetMode, protocol.Autoreset] = {
    AutoresetMode.NEXT_STEP: 'next_step',
    AutoresetMode.SAME_STEP: 'same_step',
    AutoresetMode.DISABLED: 'disabled',
}


class RemoteVectorEnv(GymnasiumVectorEnv[Array, NDArray[Any], Any]):
    """Batched envs on a server. Failed calls raise a subclass of `RemoteError`.

    `info` is that of `rl.VectorEnv`. A seed per env is one for all: the server takes one number.

    Args:
        num_envs: number of envs.
        base_url: of the server.
        user_token: of the user; None for a server without users.
        step_size: maximum number of steps of a call of `step`.
        autoreset_mode: when an env whose episode ended starts its next one, as in `rl.VectorEnv`; with a `step_size`
            above 1 an env stands still from its end to the end of the call.
        seed: of everything random in the session; None means that of the served config.
        timeout: longest time of a call, with everything that is tried again [s].

    Raises:
        VersionMismatchError: this client is too old or too new for the server.
        RemoteError: another kind of it: a limit, a wrong token, no server.
        ValueError: an argument is wrong.
    """

    def __init__(
        self,
        num_envs: int,
        base_url: str = DEFAULT_URL,
        user_token: str | None = None,
        *,
        step_size: int = 1,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        seed: int | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ):
        self._guard = CallGuard(self)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.session = RemoteSession(num_envs, step_size, base_url, user_token, seed=seed, timeout=timeout)
        self.num_envs = num_envs
        self.metadata = {
            'render_modes': [],
            'render_fps': round(1.0 / self.session.facts.step_dt),
            'autoreset_mode': self.autoreset_mode,
        }
        self._format = ActionFormat(self.session.action_space)
        self.single_action_space = self._format.space
        self.single_observation_space = spaces.Box(-np.inf, np.inf, (self.session.facts.observation_size,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._observed = False
        self._obs: Array = np.zeros((num_envs, self.session.facts.observation_size), np.float32)
        self._active: Bools = np.zeros(num_envs, bool)
        self._episodes: NDArray[np.int64] = np.full(num_envs, -1)
        self._ended: Bools = np.zeros(num_envs, bool)  # and not started again yet

    @property
    def workers(self) -> WorkerEnvs:
        """Workers for a viewer, see `internutopia.viewer.attach`. VersionMismatchError if it cannot show them."""
        from internutopia.remote.workers import RemoteWorkers

        return RemoteWorkers(self.session)

    @override
    @exclusive
    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start the next episodes, in all envs or in those of `options['reset_mask']`, bool `(n,)`.

        A seed restarts randomness and endless episode orders; None continues them. Envs that are not in the mask
        keep the observation that was returned last.

        Raises:
            ValueError, TypeError: the seed or the mask is wrong; nothing is reset.
            RuntimeError: the envs are closed.
        """
        check_open(self.closed, 'reset')
        mask = checked_mask(options, self.num_envs)
        seeds = checked_seed(seed, self.num_envs)
        if isinstance(seeds, list):
            seeds = int(np.random.SeedSequence(seeds).generate_state(1)[0])
        reply = self.session.reset(np.flatnonzero(mask).tolist(), seeds)
        self._observed = True
        self._obs[mask] = reply.observations
        self._active[mask] = reply.active
        self._episodes[mask] = reply.episodes
        self._ended &= ~mask
        return self._obs.copy(), self._episode_info()

    @override
    @exclusive
    def step(self, actions: NDArray[Any]) -> tuple[Array, NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Advance all envs by up to `step_size` steps; `actions` is `(n, k)`, or `(n,)` integers if they are choices.

        Raises:
            ValueError: the actions have the wrong shape, are no real numbers or (as `InvalidRequestError`) not in the
                action space, or, without autoreset, an env has ended and was not reset. No env has moved.
            RuntimeError: the envs were not reset yet, or are closed.
        """
        check_open(self.closed, 'step')
        if not self._observed:
            raise RuntimeError('reset the envs first')
        actions = self._format.array(actions, self.num_envs)
        if self.autoreset_mode is AutoresetMode.DISABLED and self._ended.any():
            waiting = np.flatnonzero(self._ended).tolist()
            raise ValueError(f'envs {waiting} have ended: reset them first, with options={{"reset_mask": ...}}')
        reply = self.session.step(actions, _AUTORESETS[self.autoreset_mode])
        ended = reply.ended.copy()
        seen = reply.lengths > 0
        obs = np.zeros_like(self._obs)
        obs[seen] = reply.observations[np.cumsum(reply.lengths)[seen] - 1]
        info = self._outcomes(reply)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any():
            final_obs = np.where(ended[:, None], obs, np.float32(0.0))
            final_info = {**self._episode_info(), **info}
            info |= {'final_obs': final_obs, '_final_obs': ended, 'final_info': final_info, '_final_info': ended.copy()}
            obs[ended] = 0.0  # of those for which no episode is left
        obs[reply.started] = reply.start_observations
        self._obs[:] = obs
        self._active[:] = reply.active
        self._episodes[:] = reply.episodes
        self._ended = ended & (self.autoreset_mode is not AutoresetMode.SAME_STEP)
        return (
            obs,
            reply.rewards.astype(np.float64),
            reply.terminated.copy(),
            reply.truncated.copy(),
            {**self._episode_info(), **info},
        )

    @override
    @closing
    def close_extras(self, **kwargs: Any) -> None:
        """End the session."""
        self.session.close()

    def _episode_info(self) -> dict[str, Any]:
        return {
            'active': self._active.copy(),
            '_active': np.ones(self.num_envs, bool),
            'episode_id': self._episodes.copy(),
            '_episode_id': self._active.copy(),
        }

    def _outcomes(self, reply: protocol.StepReply) -> dict[str, Any]:
        """Return the entries of `info` on episodes that ended and envs that failed."""
        failed = np.isin(np.arange(self.num_envs), list(reply.errors))
        info: dict[str, Any] = {'failed': failed, '_failed': np.ones(self.num_envs, bool)}
        if reply.ended.any():
            info['episode_return'] = reply.episode_return.copy()
            info['episode_length'] = reply.episode_length.copy()
            info['_episode_return'] = info['_episode_length'] = reply.ended.copy()
        if reply.errors:
            info['error'] = np.array([reply.errors.get(i, '') for i in range(self.num_envs)], object)
            info['_error'] = failed.copy()
        return info


VectorEnv = RemoteVectorEnv
"""The public name."""
