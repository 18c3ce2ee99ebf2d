"""Routes of the server. `protocol` has the messages; `http_bodies` reads and writes them."""

from __future__ import annotations

import reprlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from gymnasium import spaces
from numpy.typing import NDArray

import internutopia
from internutopia.remote import protocol
from internutopia.remote.protocol import KEY_HEADER, MAX_KEY_LENGTH, PREFIX, StepEpisodes
from internutopia.remote.server.http_bodies import (
    Context,
    body,
    fingerprint,
    reader,
    replies,
    reply,
    reply_type,
    response,
)
from internutopia.remote.server.reply_cache import Body, ReplyCache
from internutopia.remote.server.server_settings import Settings
from internutopia.remote.server.service_error import invalid, retry_later
from internutopia.remote.server.session_manager import SessionManager
from internutopia.remote.server.user_session import Session
from internutopia.remote.server.users import User
from internutopia.remote.server.worker import Description
from internutopia.remote.viewer_protocol import GetScene, ScenePart, SeenEnvs, ViewEnvs


@dataclass(frozen=True)
class _Call:
    """A request of a user, whose token the middleware has checked."""

    request: Request
    user: User
    sessions: SessionManager

    @classmethod
    async def of(cls, request: Request) -> _Call:
        user = Context.of(request).user
        assert user is not None  # the middleware refuses requests without one
        return cls(request, user, _sessions(request))

    def find(self, session_id: str, as_admin: bool = False) -> Session:
        return self.sessions.find(self.user, session_id, as_admin)

    async def run(self, session: Session, name: str, **arguments: Any) -> Body:
        """Return the result of a call of a session."""
        media_type = reply_type(self.request)
        return Body(await session.call(name, media_type, **arguments), media_type)

    async def once(self, kept: ReplyCache, key: str | None, act: Callable[[], Awaitable[Body]]) -> Response:
        """Return the result of an action, or the reply that is kept for the key."""
        mark = b'' if key is None else await fingerprint(self.request)
        return response(await kept.once(key, mark, act))

    def reply(self, message: Any) -> Body:
        return reply(self.request, message)


def _sessions(request: Request) -> SessionManager:
    return request.app.state.session_manager


Call = Annotated[_Call, Depends(_Call.of)]
SessionId = Annotated[protocol.Id, Path(description='Id of a session.')]
Key = Annotated[
    str | None,
    Header(
        alias=KEY_HEADER,
        min_length=1,
        max_length=MAX_KEY_LENGTH,
        pattern='^[!-~]+$',
        description='A request with a key that was used before is answered with the stored reply and does nothing.',
    ),
]
Share = Annotated[float, Query(ge=0.0, le=1.0)]
Pixels = Annotated[int, Query(ge=16, le=1024, description='[pixels]')]

public = APIRouter(tags=['server'])
simulator = APIRouter(prefix=PREFIX, tags=['simulator'])
insight = APIRouter(tags=['insight'])

_FLOAT_BYTES = 4


@simulator.post(
    '/episode/vectorized_step',
    **replies(protocol.StepReply, 400, 404, 409, 413, 415, 422),
    **body(protocol.StepEpisodes),
)
async def step_episodes(
    call: Call,
    message: Annotated[protocol.StepEpisodes, Depends(reader(protocol.StepEpisodes))],
    key: Key = None,
) -> Response:
    """Advance all envs of a session by up to `step_size` steps, and get every observation in between."""
    session = call.find(message.session_id)

    async def act() -> Body:
        return await call.run(
            session,
            'step',
            env_ids=_checked_step(session, message, call.sessions.description, call.sessions.settings),
            actions=_checked_actions(message, call.sessions.description.action_format.space),
            step_size=message.step_size,
            autoreset=message.autoreset,
        )

    return await call.once(session.reply_cache, key, act)


@simulator.post(
    '/episode/vectorized_reset',
    **replies(protocol.ResetReply, 400, 404, 413, 415, 422),
    **body(protocol.ResetEpisodes),
)
async def reset_episodes(
    call: Call,
    message: Annotated[protocol.ResetEpisodes, Depends(reader(protocol.ResetEpisodes))],
    key: Key = None,
) -> Response:
    """Start the next episodes of the session's queue in some envs."""
    session = call.find(message.session_id)

    async def act() -> Body:
        env_ids = session.env_ids(message.episode_ids)
        return await call.run(session, 'reset', env_ids=env_ids, seed=message.seed)

    return await call.once(session.reply_cache, key, act)


@simulator.post('/session/create', **replies(protocol.Session, 400, 413, 415, 422), **body(protocol.CreateSession))
async def create_session(
    call: Call,
    message: Annotated[protocol.CreateSession, Depends(reader(protocol.CreateSession))],
    key: Key = None,
) -> Response:
    """Make envs of the caller's own. They are built in the background."""

    async def act() -> Body:
        return call.reply(call.sessions.describe(await call.sessions.create(call.user, message)))

    return await call.once(call.sessions.reply_cache(call.user), key, act)


@simulator.post(
    '/episode/create',
    **replies(protocol.Episodes, 400, 404, 409, 413, 415, 422),
    **body(protocol.CreateEpisodes),
)
async def create_episodes(
    call: Call,
    message: Annotated[protocol.CreateEpisodes, Depends(reader(protocol.CreateEpisodes))],
    key: Key = None,
) -> Response:
    """Make handles of envs that have none yet. A handle stays the same over all episodes that the env runs."""
    session = call.find(message.session_id)

    async def act() -> Body:
        new = session.create_episodes(message.count)
        return call.reply({'episode_ids': new, 'total': len(session.episodes)})

    return await call.once(session.reply_cache, key, act)


@simulator.post('/session/close', **replies(protocol.Closed, 400, 404, 413, 415, 422), **body(protocol.CloseSession))
async def close_session(
    call: Call,
    message: Annotated[protocol.CloseSession, Depends(reader(protocol.CloseSession))],
    key: Key = None,
) -> Response:
    """Free the envs of a session, also in the middle of a call."""

    async def act() -> Body:
        call.sessions.close_session(call.user, message.session_id)
        return call.reply({'closed': True})

    return await call.once(call.sessions.reply_cache(call.user), key, act)


@simulator.post('/session/look', **replies(SeenEnvs, 400, 404, 413, 415, 422), **body(ViewEnvs))
async def view(call: Call, message: Annotated[ViewEnvs, Depends(reader(ViewEnvs))]) -> Response:
    """Get the states of a session's envs for a viewer, and command their robots.

    It counts as use of the session: one that is viewed does not expire.
    """
    fields = message.model_dump(exclude={'session_id'})
    return response(await call.run(call.find(message.session_id), 'view', **fields))


@simulator.post('/session/scene', **replies(ScenePart, 400, 404, 409, 413, 415, 422), **body(GetScene))
async def scene(call: Call, message: Annotated[GetScene, Depends(reader(GetScene))]) -> Response:
    """Get the compiled model that an env of a session runs, part by part."""
    fields = message.model_dump(exclude={'session_id'})
    return response(await call.run(call.find(message.session_id), 'scene', **fields))


@simulator.get('/session/{session_id}', **replies(protocol.SessionState, 404, 422))
async def session_state(call: Call, session_id: SessionId) -> Response:
    """Get a live session, to resume it."""
    return response(call.reply(call.sessions.describe_state(call.find(session_id))))


@simulator.get('/sessions', **replies(protocol.Sessions))
async def own_sessions(call: Call) -> Response:
    """List the caller's live sessions."""
    states = [call.sessions.describe_state(session) for session in call.sessions.of(call.user)]
    return response(call.reply(protocol.Sessions(sessions=states)))


@simulator.get('/status', **replies(protocol.Status))
async def status(call: Call) -> Response:
    """Get the progress of the caller's sessions; of all users' sessions for an admin."""
    return response(call.reply(call.sessions.status(call.user)))


@simulator.get(
    '/session/{session_id}/picture',
    **replies(None, 404, 422, content={'image/png': {'schema': {'type': 'string', 'format': 'binary'}}}),
)
async def picture(
    call: Call,
    session_id: SessionId,
    width: Pixels = 640,
    height: Pixels = 480,
    env: Annotated[int | None, Query(ge=0, description='Env that alone is shown.')] = None,
    camera: Annotated[
        str, Query(max_length=256, description="Its camera: 'follow', 'top', or one of the session's `cameras`.")
    ] = 'follow',
) -> Response:
    """Get an image of all envs of a session in their places, or of one of them.

    It is rendered about once a second; in between the last image comes again.
    """
    png = await call.find(session_id, as_admin=True).picture(width, height, env, camera)
    return Response(png, media_type='image/png', headers={'Cache-Control': 'no-store'})


@simulator.get('/session/{session_id}/env_at', **replies(protocol.EnvAt, 404, 422))
async def env_at(
    call: Call,
    session_id: SessionId,
    x: Share,
    y: Share,
    width: Pixels = 640,
    height: Pixels = 480,
) -> Response:
    """Get the env at a point of the image of all envs, which goes from (0, 0), left and top, to (1, 1)."""
    env = await call.find(session_id, as_admin=True).env_at(x, y, width, height)
    return response(call.reply(protocol.EnvAt(env=env)))


@insight.get('/metrics', **replies(None, content={'text/plain': {'schema': {'type': 'string'}}}))
async def metrics(request: Request) -> Response:
    """Get metrics for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type='text/plain; version=0.0.4')


@public.get(f'{PREFIX}/version', **replies(protocol.Version))
async def version(request: Request) -> Response:
    """Get the version of the server and the oldest client that it supports. Needs no token."""
    return _answer(
        request,
        protocol.Version(version=internutopia.__version__, api=protocol.API, minimum_client=protocol.MINIMUM_CLIENT),
    )


@public.get('/livez', **replies(protocol.Health))
async def live(request: Request) -> Response:
    """Check that the server answers; if not, it should be restarted. Needs no token."""
    return _answer(request, protocol.Health(status='ok'))


@public.get('/readyz', **replies(protocol.Health, 503))
async def ready(request: Request) -> Response:
    """Check that calls are taken: the server is not shutting down, has capacity, and can start workers.

    Needs no token.
    """
    await _sessions(request).check_ready()
    if request.app.state.in_flight.full:
        raise retry_later(503, 'overloaded', 'as many requests are at work as may be')
    return _answer(request, protocol.Health(status='ok'))


@public.get('/health', **replies(protocol.Health, 503))
async def health(request: Request) -> Response:
    """Check that the server works and is not shutting down. Needs no token."""
    _sessions(request).check_open()
    return _answer(request, protocol.Health(status='ok'))


def _checked_step(
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


def _checked_actions(request: StepEpisodes, space: spaces.Box | spaces.Discrete) -> NDArray[Any]:
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


def _answer(request: Request, message: protocol.Reply) -> Response:
    return response(reply(request, message))
