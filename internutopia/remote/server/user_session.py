"""Session: the envs of a user, and the queue of calls to them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from internutopia.remote.protocol import QueueStatus, SessionStatus
from internutopia.remote.server.limits import Line, Metrics
from internutopia.remote.server.process import WorkerDiedError, WorkerProcess
from internutopia.remote.server.reply_cache import ReplyCache
from internutopia.remote.server.server_settings import Settings
from internutopia.remote.server.service_error import ServiceError, invalid
from internutopia.remote.server.session_calls import Progress
from internutopia.remote.server.worker import Done, Failed
from internutopia.util import log
from internutopia.util.encoding import JSON

_RATE_WINDOW = 10.0  # s, over which steps per second are counted


class Session:
    """Envs of a user in a worker process, which does one call at a time.

    Attributes:
        end: error for further calls once the session is over; None before.
    """

    def __init__(
        self,
        user: str,
        num_envs: int,
        settings: Settings,
        metrics: Metrics,
        on_failure: Callable[[Session], None],
    ):
        self.id = str(uuid.uuid4())
        self.user = user
        self.num_envs = num_envs
        self.episodes: dict[str, int] = {}  # env by episode id
        self.reply_cache = ReplyCache(settings.kept_replies, settings.waiting)
        self.progress = Progress()
        self.process: WorkerProcess | None = None
        self.end: ServiceError | None = None
        self._settings = settings
        self._metrics = metrics
        self._on_failure = on_failure
        self._lock = asyncio.Lock()
        self._calls = Line(1 + settings.waiting, 'calls of this session are at work and waiting')
        self._created = self._used = time.monotonic()
        self._step_marks: deque[tuple[float, int]] = deque([(self._created, 0)])
        self._picture_lock = asyncio.Lock()
        self._viewers = Line(1 + settings.waiting, 'requests for a picture of this session are waiting')
        self._picture = b''
        self._view: tuple[int | None, str] | None = None  # what it shows: which env, through which camera
        self._rendered = 0.0

    @property
    def age(self) -> float:
        """Time since the session was made [s]."""
        return time.monotonic() - self._created

    @property
    def busy(self) -> bool:
        """True if a call is at work."""
        return self._calls.length > 0

    @property
    def idle(self) -> float:
        """Time since the envs were last used [s]; 0 while they are."""
        return 0.0 if self.busy else time.monotonic() - self._used

    def create_episodes(self, count: int) -> list[str]:
        """Make handles of envs that have none yet. ServiceError if there are fewer of them."""
        left = self.num_envs - len(self.episodes)
        if count > left:
            message = f'count: {count} episodes requested, but only {left} of the {self.num_envs} envs have none yet'
            raise ServiceError(409, 'conflict', message)
        new = [str(uuid.uuid4()) for _ in range(count)]
        self.episodes.update(zip(new, range(len(self.episodes), self.num_envs), strict=False))
        self._used = time.monotonic()
        return new

    def env_ids(self, episode_ids: list[str]) -> NDArray[np.intp]:
        """Return the envs of handles. ServiceError for an unknown or repeated handle."""
        try:
            env_ids = [self.episodes[episode_id] for episode_id in episode_ids]
        except KeyError as error:
            raise ServiceError(404, 'unknown_episode', f'the session has no episode {error.args[0]}') from None
        if len(set(env_ids)) < len(env_ids):
            ((twice, _),) = Counter(episode_ids).most_common(1)
            raise invalid(f'episode_ids: {twice} is listed twice')
        return np.array(env_ids, np.intp)

    async def call(self, name: str, media_type: str, **arguments: Any) -> bytes:
        """Run a call in the worker, after the calls made before.

        ServiceError if too many calls wait already, if it is refused (nothing has changed then), or if the session is
        over.
        """
        body = await self._queue(name, arguments, media_type)
        self._used = time.monotonic()
        return body

    async def picture(self, width: int, height: int, env_id: int | None = None, camera: str = 'follow') -> bytes:
        """Return an image of all envs in their places, or of one of them, as PNG.

        The last one is returned if it is recent, or while many calls wait; a request for another image waits
        for a moment. This does not keep a session from expiring. ServiceError as for calls, if there is no image
        yet, and if there is no such env or camera.
        """
        if env_id is not None and env_id >= self.num_envs:
            raise invalid(f'env: {env_id}, but the session has {self.num_envs} envs')
        view = env_id, camera
        with self._viewers:
            async with self._picture_lock:
                left = self._rendered + self._settings.picture_interval - time.monotonic()
                if view == self._view and (left > 0.0 or self._calls.full):
                    return self._picture
                await asyncio.sleep(left if self._picture else 0.0)  # however many show different envs
                arguments = {'width': width, 'height': height, 'env_id': env_id, 'camera': camera}
                self._picture = await self._queue('picture', arguments)
                self._view, self._rendered = view, time.monotonic()
                return self._picture

    async def env_at(self, x: float, y: float, width: int, height: int) -> int:
        """Return the env at a point of the image of all envs, from (0, 0), left and top, to (1, 1).

        This does not keep a session from expiring. ServiceError as for calls.
        """
        return int(await self._queue('env_at', {'x': x, 'y': y, 'width': width, 'height': height}))

    def status(self) -> SessionStatus:
        """Return the status that the page shows."""
        return SessionStatus(
            session_id=self.id,
            user=self.user,
            num_envs=self.num_envs,
            steps=self.progress.steps,
            steps_per_second=self._steps_per_second(),
            age=self.age,
            idle=self.idle,
            state='busy' if self.busy else 'idle',
            queue=QueueStatus(left=self.progress.left, started=self.progress.started, ended=self.progress.ended),
            returns=self.progress.returns,
            cameras=self.progress.cameras,
            results=self.progress.results,  # pyright: ignore[reportArgumentType] - validated into models
        )

    def fail(self, reason: str) -> ServiceError:
        """End the session because its worker failed; returns the error for its callers."""
        if self.end is None:
            log.error('session=%s user=%s failed: %s', self.id, self.user, reason)
            self.end = ServiceError(
                503, 'session_failed', f'session {self.id} failed and no longer exists: create a new one'
            )
            self._metrics.worker_deaths.inc()
            self._on_failure(self)
        return self.end

    async def _queue(self, name: str, arguments: dict[str, Any], media_type: str = JSON) -> bytes:
        with self._calls:
            async with self._lock:
                return await self._send_call(name, arguments, media_type)

    async def _send_call(self, name: str, arguments: dict[str, Any], media_type: str) -> bytes:
        if self.end is not None:
            raise self.end.copy()
        assert self.process is not None
        try:
            async with asyncio.timeout(self._settings.call_timeout):
                answer = await self.process.call(name, arguments, media_type)
        except (WorkerDiedError, TimeoutError) as error:
            raise self.fail(str(error) or f'no answer within {self._settings.call_timeout:g} s') from None
        except BaseException:  # the answer would be taken for that of the next call
            self.fail('a call was broken off')
            raise
        if isinstance(answer, Failed):
            raise self.fail(answer.traceback)
        if isinstance(answer, ServiceError):
            raise answer
        assert isinstance(answer, Done)
        self._update_progress(answer.progress)
        return answer.body

    def _update_progress(self, progress: Progress) -> None:
        self._metrics.steps.inc(progress.steps - self.progress.steps)
        self._metrics.episodes.inc(progress.ended - self.progress.ended)
        self.progress = progress
        now = time.monotonic()
        if now - self._step_marks[-1][0] > 0.1 * _RATE_WINDOW:
            self._step_marks.append((now, progress.steps))
        while len(self._step_marks) > 1 and self._step_marks[0][0] < now - _RATE_WINDOW:
            self._step_marks.popleft()

    def _steps_per_second(self) -> float:
        """Return the recent env steps per second."""
        now = time.monotonic()
        recent = (mark for mark in self._step_marks if mark[0] >= now - _RATE_WINDOW)
        then, steps = next(recent, (now, self.progress.steps))
        return (self.progress.steps - steps) / max(now - then, 1e-3)
