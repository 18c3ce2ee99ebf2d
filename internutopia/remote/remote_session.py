"""Remote session: envs on a server; both kinds of remote envs use it."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError
from numpy.typing import NDArray
from packaging.version import Version

import internutopia
from internutopia.remote import protocol
from internutopia.remote.call_errors import (
    InvalidRequestError,
    LimitError,
    RemoteError,
    SessionLostError,
    VersionMismatchError,
)
from internutopia.remote.client import DEFAULT_TIMEOUT, Client
from internutopia.util.imports import install_hint

if TYPE_CHECKING:
    from internutopia.core.runner.interfaces import StepWatcher

logger = logging.getLogger(__name__)

DEFAULT_URL = 'http://127.0.0.1:8001'
_CLOSE_TIMEOUT = 2.0  # s; a server that is gone shall not hold up the end of a program


class RemoteSession:
    """Session on a server, with a handle for each of its envs.

    Arguments and errors are those of `create_vectorized_env`. It ends with `close`, when the object is
    garbage-collected, and with the program; or on the server when idle for too long.

    Attributes:
        watchers: step watchers, called in the thread that steps.
    """

    def __init__(
        self,
        num_envs: int,
        step_size: int,
        base_url: str = DEFAULT_URL,
        user_token: str | None = None,
        *,
        session_id: str | None = None,
        seed: int | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ):
        if step_size < 1:
            raise ValueError(f'step_size must be 1 or more, got {step_size!r}')
        self.step_size = step_size
        self.watchers: list[StepWatcher] = []
        self.client = Client(base_url, user_token, timeout)
        try:
            _check_version(self.client)
            if session_id is None:
                request = protocol.CreateSession(num_envs=num_envs, seed=seed, client_version=internutopia.__version__)
                self.facts = self.client.post('session/create', request, protocol.Session)
                self.episode_ids: list[str] = []
                logger.info('Created session %s', self.facts.session_id)
            else:
                living = self.client.get(f'session/{session_id}', protocol.SessionState)
                if living.num_envs != num_envs:
                    raise ValueError(f'num_envs={num_envs}: session {session_id} has {living.num_envs} envs')
                self.facts, self.episode_ids = living, living.episode_ids
                logger.info('Found session %s, %.0f s old, after %d env steps', session_id, living.age, living.steps)
            self.session_id, self.num_envs = self.facts.session_id, self.facts.num_envs
            # also at the end of the program, before what it needs is torn down
            self._end = weakref.finalize(self, _end, self.client, self.session_id, os.getpid())
            most = self.facts.limits.max_step_size
            if step_size > most:
                raise LimitError(f'step_size={step_size}: the server {base_url} allows at most {most}', 'invalid')
            missing = self.num_envs - len(self.episode_ids)
            if missing:
                more = protocol.CreateEpisodes(session_id=self.session_id, count=missing)
                self.episode_ids += self.client.post('episode/create', more, protocol.Episodes).episode_ids
                logger.info('Created episodes %s', self.episode_ids)
        except BaseException:
            self.close()
            raise

    @property
    def action_space(self) -> spaces.Box | spaces.Discrete:
        """Actions of one env."""
        action = self.facts.action
        if isinstance(action, protocol.DiscreteAction):
            return spaces.Discrete(action.n)
        low = np.array([-np.inf if value is None else value for value in action.low], np.float32)
        high = np.array([np.inf if value is None else value for value in action.high], np.float32)
        return spaces.Box(low, high)

    def reset(self, env_ids: Sequence[int], seed: int | None = None) -> protocol.ResetReply:
        """Start the next episodes in some envs; one row for each, in this order. Raises: RemoteError."""
        ids = [self.episode_ids[env_id] for env_id in env_ids]
        request = protocol.ResetEpisodes(session_id=self.session_id, episode_ids=ids, seed=seed)
        reply = self.client.post('episode/vectorized_reset', request, protocol.ResetReply)
        self._notify_change()
        return reply

    def step(self, actions: NDArray[np.number], autoreset: protocol.Autoreset) -> protocol.StepReply:
        """Advance all envs by up to `step_size` steps; one row for each. Raises: RemoteError."""
        for watcher in self.watchers:
            watcher.on_step_start()
        request = protocol.StepEpisodes(
            session_id=self.session_id,
            episode_ids=self.episode_ids,
            actions=actions,
            step_size=self.step_size,
            autoreset=autoreset,
        )
        reply = self.client.post('episode/vectorized_step', request, protocol.StepReply)
        self._notify_change()
        return reply

    def close(self, end_session: bool = True) -> None:
        """End the session, or leave it to be resumed by its id; idempotent. Failures are only logged."""
        end = getattr(self, '_end', None)
        if end is not None:
            end() if end_session else end.detach()
        self.client.close()

    def _notify_change(self) -> None:
        for watcher in self.watchers:
            watcher.on_change()


def _end(client: Client, session_id: str, process: int) -> None:
    if os.getpid() != process:  # a fork, which ends; the session is the other process's
        return
    request = protocol.CloseSession(session_id=session_id)
    try:
        client.post('session/close', request, protocol.Closed, _CLOSE_TIMEOUT)
        logger.info('Closed session %s', session_id)
    except SessionLostError:
        logger.info('Session %s no longer existed', session_id)
    except (RemoteError, AlreadyPendingCallError) as error:  # of a thread that the program did not wait for at its end
        logger.warning('Session %s stays open until it expires: %s', session_id, error)
    finally:
        with suppress(AlreadyPendingCallError):
            client.close()


def _check_version(client: Client) -> None:
    try:
        server = client.get('version', protocol.Version)
    except InvalidRequestError as error:
        message = f'{client.base_url} is no server of InternUtopia that speaks version {protocol.API}: {error}'
        raise VersionMismatchError(message, 'version', error.status, error.request_id) from error
    mine = internutopia.__version__
    if server.api != protocol.API:
        raise VersionMismatchError(
            f'the server {client.base_url} speaks version {server.api} of the protocol, this client version '
            f'{protocol.API}: {install_hint("remote")}, version {server.version}',
            'version',
        )
    if Version(mine) < Version(server.minimum_client):
        raise VersionMismatchError(
            f'this client is version {mine}, the server {client.base_url} needs {server.minimum_client} or newer: '
            f'{install_hint("remote")}, version {server.minimum_client} or newer',
            'version',
        )
    logger.info('Client is up to date (version %s; server %s)', mine, server.version)
