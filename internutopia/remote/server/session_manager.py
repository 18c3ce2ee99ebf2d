"""Session manager: the sessions of all users."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import time
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from gymnasium import spaces

import internutopia
from internutopia.config import Config
from internutopia.remote import protocol
from internutopia.remote.protocol import BoxAction, CreateSession, DiscreteAction, ServerStatus, Status, Totals
from internutopia.remote.server import worker
from internutopia.remote.server.limits import Metrics
from internutopia.remote.server.process import WorkerLauncher, WorkerProcess
from internutopia.remote.server.reply_cache import ReplyCache
from internutopia.remote.server.server_settings import Settings
from internutopia.remote.server.service_error import ServiceError, retry_later, shutting_down
from internutopia.remote.server.user_session import Session
from internutopia.remote.server.users import User
from internutopia.remote.server.worker import Description, Failed
from internutopia.util import log

_MAX_ENDED = 4096  # sessions that are over
_SWEEP_INTERVAL = 0.5  # s between two checks for sessions that are over


class ConfigError(ValueError):
    """The served config does not work."""


class SessionManager:
    """Manager that creates sessions of a config, finds them and ends idle ones."""

    def __init__(self, config: Config, settings: Settings, metrics: Metrics):
        self.settings = settings
        self.shutting_down = False
        self._config = config.model_copy(update={'metrics_save_path': None})  # results are in the replies
        self._metrics = metrics
        self._launcher = WorkerLauncher()
        self._sessions: dict[str, Session] = {}
        self._ended: OrderedDict[str, tuple[str, ServiceError]] = OrderedDict()  # user, and why
        self._user_replies: defaultdict[str, ReplyCache] = defaultdict(
            lambda: ReplyCache(settings.kept_replies, settings.waiting)
        )
        self._description: Description | None = None
        self._started = time.monotonic()
        self._end_tasks: set[asyncio.Task[None]] = set()  # kept, or they could be collected before they are done

    @property
    def description(self) -> Description:
        """Description of an env, available after `probe`."""
        assert self._description is not None
        return self._description

    @property
    def busy(self) -> bool:
        """True if calls are at work."""
        return any(session.busy for session in self._sessions.values())

    async def probe(self) -> None:
        """Try the config in its own worker. ConfigError with the reason if it does not work."""
        process = await self._launcher.start(worker.serve_description)
        try:
            process.send(pickle.dumps(self._session_config(CreateSession(num_envs=1))))
            answer = await process.receive()
        finally:
            await self._launcher.end(process)
        if isinstance(answer, Failed):
            log.debug('%s', answer.traceback)
            raise ConfigError(answer.message)
        self._description = answer

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch for sessions that are over for the duration of the context; end all sessions on exit."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            await self.close()

    def reply_cache(self, user: User) -> ReplyCache:
        """Return the cache of replies to a user's calls outside of sessions."""
        return self._user_replies[user.name]

    async def create(self, user: User, request: CreateSession) -> Session:
        """Create envs for a user, which are built in the background. ServiceError if there are too many."""
        num_envs = self._config.env_num if request.num_envs is None else request.num_envs
        self._check_room(user, num_envs)
        session = Session(user.name, num_envs, self.settings, self._metrics, self._forget)
        self._sessions[session.id] = session
        self._count()
        try:
            session.process = await self._launcher.start(worker.serve_session)
        except BaseException:
            self._end(session, ServiceError(503, 'session_failed', f'session {session.id} could not be started'))
            raise
        if session.end is not None:  # all sessions were ended meanwhile
            self._kill(session.process)
            raise session.end.copy()
        session.process.send(pickle.dumps((self._session_config(request, num_envs), self.description)))
        log.info(
            'session=%s user=%s envs=%d pid=%d client=%r created',
            *(session.id, user.name, num_envs, session.process.pid, request.client_version),
        )
        return session

    def find(self, user: User, session_id: str, as_admin: bool = False) -> Session:
        """Return a live session of a user, or with `as_admin` of any user for an admin. ServiceError if there is none.

        The error is the same for an unknown session and for one of another user.
        """
        session = self._sessions.get(session_id)
        if session is not None and (session.user == user.name or (as_admin and user.admin)):
            self.check_open()
            return session
        owner, end = self._ended.get(session_id, (None, None))
        if end is not None and owner == user.name:
            raise end.copy()
        raise ServiceError(404, 'unknown_session', f'there is no session {session_id}')

    def close_session(self, user: User, session_id: str) -> None:
        """End a session; idempotent for some time. ServiceError if the user has no such session."""
        owner, _ = self._ended.get(session_id, (None, None))
        if owner != user.name:
            session = self.find(user, session_id)
            self._end(session, ServiceError(404, 'unknown_session', f'session {session_id} was closed'))

    def of(self, user: User, all_users: bool = False) -> list[Session]:
        """Return the sessions of a user, or with `all_users` of all users for an admin."""
        return [
            session for session in self._sessions.values() if session.user == user.name or (all_users and user.admin)
        ]

    def status(self, user: User) -> Status:
        """Return the status that the page shows to a user."""
        sessions = [session.status() for session in self.of(user, all_users=True)]
        totals = Totals(
            sessions=len(sessions),
            envs=sum(session.num_envs for session in sessions),
            steps=sum(session.steps for session in sessions),
            steps_per_second=sum(session.steps_per_second for session in sessions),
            ended=sum(session.queue.ended for session in sessions),
        )
        server = ServerStatus(
            version=internutopia.__version__,
            uptime=time.monotonic() - self._started,
            limits=self.settings.limits(),
        )
        return Status(server=server, sessions=sessions, totals=totals)

    def describe(self, session: Session) -> dict[str, Any]:
        """Return the fields of `protocol.Session`."""
        description = self.description
        return {
            'session_id': session.id,
            'num_envs': session.num_envs,
            'observation_size': description.observation_size,
            'action': _action(description.action_format.space),
            'step_dt': description.step_dt,
            'mujoco': description.mujoco,
            'limits': self.settings.limits(),
        }

    def describe_state(self, session: Session) -> protocol.SessionState:
        """Return the state that a client needs to resume a session."""
        return protocol.SessionState(
            **self.describe(session),
            episode_ids=list(session.episodes),
            age=session.age,
            idle=session.idle,
            steps=session.progress.steps,
        )

    def check_open(self) -> None:
        """Raise a ServiceError if no calls are taken any more."""
        if self.shutting_down:
            raise shutting_down()

    async def check_ready(self) -> None:
        """Raise a ServiceError if no calls are taken any more, or no workers can be started."""
        self.check_open()
        await self._launcher.check()

    def shut_down(self) -> None:
        """Refuse further calls; those at work are finished."""
        self.shutting_down = True
        for session in self._sessions.values():
            session.end = session.end or shutting_down()

    async def close(self) -> None:
        """End all sessions, and wait until their processes are gone."""
        self.shut_down()
        for session in list(self._sessions.values()):
            self._forget(session)
        await asyncio.gather(*self._end_tasks)
        self._launcher.close()

    def _session_config(self, request: CreateSession, num_envs: int = 1) -> Config:
        simulator = self._config.simulator.model_copy(update={'threads': self.settings.threads})
        seed = self._config.seed if request.seed is None else request.seed
        return self._config.model_copy(update={'env_num': num_envs, 'seed': seed, 'simulator': simulator})

    def _check_room(self, user: User, num_envs: int) -> None:
        limits = self.settings
        self.check_open()
        own = self.of(user)
        if len(own) >= limits.user_sessions:
            message = f'you have {len(own)} sessions, the most that a user may have: close one'
            raise retry_later(429, 'too_many_sessions', message)
        envs = sum(session.num_envs for session in own)
        if envs + num_envs > limits.user_envs:
            message = f'num_envs: a user may have {limits.user_envs} envs, you have {envs} and request {num_envs} more'
            raise retry_later(429, 'too_many_envs', message)
        if len(self._sessions) >= limits.max_sessions:
            raise retry_later(503, 'overloaded', f'the server has {limits.max_sessions} sessions, the most it takes')

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP_INTERVAL, self.settings.idle_timeout / 4))
            for session in list(self._sessions.values()):
                if session.process is not None and session.process.dead:
                    session.fail(f'process {session.process.pid} ended')
                elif session.idle > self.settings.idle_timeout:
                    message = f'session {session.id} was not used for {self.settings.idle_timeout:g} s and has ended'
                    self._end(session, ServiceError(404, 'unknown_session', message))

    def _end(self, session: Session, error: ServiceError) -> None:
        if session.end is None:
            session.end = error
            log.info('session=%s user=%s over: %s', session.id, session.user, error.message)
        self._forget(session)

    def _forget(self, session: Session) -> None:
        """Drop a session that is over; only its error is kept."""
        if session.end is None or self._sessions.pop(session.id, None) is None:
            return
        self._ended[session.id] = session.user, session.end
        while len(self._ended) > _MAX_ENDED:
            self._ended.popitem(last=False)
        self._count()
        if session.process is not None:
            self._kill(session.process)

    def _kill(self, process: WorkerProcess) -> None:
        task = asyncio.create_task(self._launcher.end(process))
        self._end_tasks.add(task)
        task.add_done_callback(self._end_tasks.discard)

    def _count(self) -> None:
        self._metrics.sessions.set(len(self._sessions))
        self._metrics.envs.set(sum(session.num_envs for session in self._sessions.values()))


def _action(space: spaces.Box | spaces.Discrete) -> BoxAction | DiscreteAction:
    if isinstance(space, spaces.Discrete):
        return DiscreteAction(n=int(space.n))
    low, high = (
        [float(bound) if np.isfinite(bound) else None for bound in bounds] for bounds in (space.low, space.high)
    )
    return BoxAction(low=low, high=high)
