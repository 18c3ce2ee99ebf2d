"""Messages between clients and the server, all under `PREFIX`; `encoding` turns them into bytes.

Requests are strict: wrong types and unknown fields are refused. Replies are read leniently, so that a newer server may
say more. Arrays have one row per episode of the request, in its order: m rows.

An episode id is a lasting handle of one env of a session: it stays the same when the env starts its next episode.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from internutopia.remote.array_fields import Bools, Doubles, Floats, Ints, Matrix, Numbers
from internutopia.util.encoding import MAX_ITEMS

API = 1
PREFIX = f'/api/v{API}'
MINIMUM_CLIENT = '3.0.0a1'
"""Oldest version of the client that this server supports."""

KEY_HEADER = 'Idempotency-Key'
"""A POST with a key that was used before is answered with the stored reply and does nothing."""
MAX_KEY_LENGTH = 100
REQUEST_HEADER = 'X-Request-Id'
"""Header of every reply: id of the request in the server's log; a request may bring its own."""

Autoreset = Literal['disabled', 'next_step', 'same_step']
ErrorCode = Literal[
    'malformed',  # 400
    'unauthorized',  # 401
    'wrong_host',  # 403
    'not_found',  # 404
    'unknown_session',  # 404
    'unknown_episode',  # 404
    'method_not_allowed',  # 405
    'conflict',  # 409
    'too_large',  # 413
    'unsupported_type',  # 415
    'invalid',  # 422
    'key_reused',  # 422
    'busy',  # 429, as are the next three: not done, try again after `Retry-After`
    'rate_limited',
    'too_many_sessions',
    'too_many_envs',
    'internal',  # 500
    'session_failed',  # 503: the session is gone
    'no_picture',  # 503
    'overloaded',  # 503, as is the next one: not done, try again after `Retry-After`
    'shutting_down',
]


def whole(value: Any) -> Any:
    """Convert a float with an integer value to an int, as in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Id = Annotated[
    str,
    Field(
        pattern='^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
        json_schema_extra={'format': 'uuid'},
    ),
]
Count = Annotated[int, Field(ge=1, le=MAX_ITEMS), BeforeValidator(whole)]
Seed = Annotated[int, Field(ge=0, lt=1 << 63), BeforeValidator(whole)]
EpisodeIds = Annotated[list[Id], Field(min_length=1, max_length=MAX_ITEMS, fail_fast=True)]


class Request(BaseModel):
    """Base class of requests."""

    model_config = ConfigDict(strict=True, extra='forbid', use_attribute_docstrings=True)


class Reply(BaseModel):
    """Base class of replies."""

    model_config = ConfigDict(extra='ignore', use_attribute_docstrings=True)


class CreateSession(Request):
    """POST session/create: envs of the caller's own."""

    num_envs: Count | None = None
    """Number of envs; null means that of the served config."""
    seed: Seed | None = None
    """Seed of everything random in the session; null means that of the served config."""
    client_version: Annotated[str, Field(max_length=40)] | None = None
    """Version of the client, for the server's log."""


class CreateEpisodes(Request):
    """POST episode/create: handles of envs that have none yet."""

    session_id: Id
    count: Count = 1
    """Number of envs."""


class ResetEpisodes(Request):
    """POST episode/vectorized_reset: start the next episodes of the session's queue."""

    session_id: Id
    episode_ids: EpisodeIds
    """Envs to reset, each once; they get the queue's next episodes in this order."""
    seed: Seed | None = None
    """Seed that restarts everything random, and an endless order of episodes."""


class StepEpisodes(Request):
    """POST episode/vectorized_step: advance all envs of the session."""

    session_id: Id
    episode_ids: EpisodeIds
    """All envs of the session, in any order, each once."""
    actions: Numbers
    """Actions `(m, a)`, or `(m,)` where an action is one number."""
    step_size: Count = 1
    """Maximum number of steps; the action is held. An env stands still once its episode has ended."""
    autoreset: Autoreset = 'disabled'
    """Time at which an env whose episode is over starts the next one: on reset, in the next call or in the same."""


class CloseSession(Request):
    """POST session/close: free the envs."""

    session_id: Id


class BoxAction(Reply):
    """Action of numbers between bounds."""

    type: Literal['box'] = 'box'
    low: list[float | None]
    """Smallest value of each of the `a` numbers; null means no bound."""
    high: list[float | None]
    """Largest value of each."""


class DiscreteAction(Reply):
    """Action that is one of the choices 0 .. n-1."""

    type: Literal['discrete'] = 'discrete'
    n: int


class Limits(Reply):
    """Limits of a user."""

    max_sessions: int
    """Maximum number of concurrent sessions of a user."""
    max_envs: int
    """Maximum number of envs of a user over all sessions."""
    max_body: int
    """Maximum size of a request's body [bytes]."""
    max_reply: int
    """Maximum size of the observations in a reply [bytes]."""
    max_step_size: int
    requests_per_second: float
    """Sustained request rate of a user [1/s]."""
    idle_timeout: float
    """Time after which a session that is not stepped, reset or viewed ends [s]."""


class Version(Reply):
    """GET version."""

    version: str
    """Version of the server's package."""
    api: int
    """Version of this protocol."""
    minimum_client: str
    """Oldest version of the client that the server supports."""


class Health(Reply):
    """GET health."""

    status: Literal['ok', 'shutting_down']


class Session(Reply):
    """Envs of one user: the reply to session/create."""

    session_id: Id
    num_envs: int
    observation_size: int
    """Numbers in an observation, k."""
    action: Annotated[BoxAction | DiscreteAction, Field(discriminator='type')]
    """Action of one env."""
    step_dt: float
    """Length of a step [s]."""
    mujoco: str | None = None
    """Version of MuJoCo that scenes are compiled with; null: their states and models are not available."""
    limits: Limits


class SessionState(Session):
    """GET session/ID: a live session, to resume it."""

    episode_ids: list[Id]
    """Handles that were made, in order."""
    age: float
    """Time since the session was made [s]."""
    idle: float
    """Time since the last call [s]."""
    steps: int
    """Env steps so far, over all envs."""


class Sessions(Reply):
    """GET sessions: the caller's own."""

    sessions: list[SessionState]


class Episodes(Reply):
    """Reply to episode/create."""

    episode_ids: list[Id]
    """The new handles."""
    total: int
    """Envs of the session that have a handle now."""


class Closed(Reply):
    """Reply to session/close."""

    closed: bool


class ResetReply(Reply):
    """Reply to episode/vectorized_reset; rows in the order of the request."""

    observations: Matrix
    """First observations `(m, k)`; zero without an episode."""
    active: Bools
    """True if the env has an episode `(m,)`; false once the queue is exhausted."""
    episodes: Ints
    """Number of the episode in the session's queue `(m,)`, -1 for none."""


class StepReply(Reply):
    """Reply to episode/vectorized_step; rows in the order of the request.

    An env whose episode was over before the call and is not started in it repeats its last observation (length 1) and
    its flags, with reward 0. An env without an episode, or one that `next_step` starts, has length 0.
    """

    observations: Matrix
    """Observations after each step `(sum(lengths), k)`: those of the first row, then those of the second ..."""
    lengths: Ints
    """Observations of each row `(m,)`."""
    rewards: Floats
    """Rewards, summed over the steps `(m,)`."""
    terminated: Bools
    """True if the episode is over by an outcome `(m,)`."""
    truncated: Bools
    """True if the episode was truncated `(m,)`."""
    ended: Bools
    """True if the episode ended in this call `(m,)`."""
    steps: Ints
    """Steps of the episode so far `(m,)`; with `same_step`, of the one that ended."""
    active: Bools
    """True if the env has an episode, running or over, after the call `(m,)`."""
    episodes: Ints
    """Number in the queue of the env's episode after the call `(m,)`, -1 for none."""
    errors: dict[int, str] = {}
    """Error messages of envs that failed, by row; their episodes are terminated."""
    episode_return: Doubles
    """Sum of the rewards of an episode that ended in this call `(m,)`, else 0."""
    episode_length: Ints
    """Steps of an episode that ended in this call `(m,)`, else 0."""
    started: Bools
    """True if autoreset started an episode in this call `(m,)`."""
    start_observations: Matrix
    """First observations of the started episodes `(count(started), k)`, in the order of the rows."""


class EndedEpisode(Reply):
    """The outcome of an episode."""

    episode: int
    """Number in the session's queue."""
    episode_return: float | None = Field(alias='return')
    """Sum of its rewards."""
    length: int
    """Its steps."""
    terminated: bool
    truncated: bool
    error: str | None
    """Error message if physics failed."""


class QueueStatus(Reply):
    """The episodes of a session."""

    left: int | None
    """Episodes that were not started yet; null for an order without an end."""
    started: int
    ended: int


class SessionStatus(Reply):
    """A session as the page shows it."""

    session_id: Id
    user: str
    num_envs: int
    steps: int
    """Env steps so far, over all envs."""
    steps_per_second: float
    """Env steps per second, lately."""
    age: float
    """[s]"""
    idle: float
    """[s]"""
    state: Literal['idle', 'busy']
    queue: QueueStatus
    results: list[EndedEpisode]
    """The last episodes that ended, newest first, at most 10."""
    returns: list[float | None]
    """Returns of the last episodes that ended, oldest first, at most 240."""
    cameras: list[str]
    """Cameras in its envs from which an image can be requested."""


class EnvAt(Reply):
    """Env at a point of an image."""

    env: int


class ServerStatus(Reply):
    """The server as the page shows it."""

    version: str
    uptime: float
    """[s]"""
    limits: Limits


class Totals(Reply):
    """Sums over the sessions that are shown."""

    sessions: int
    envs: int
    steps: int
    steps_per_second: float
    ended: int
    """Episodes."""


class Status(Reply):
    """GET status: the caller's sessions, or all of them for an admin."""

    server: ServerStatus
    sessions: list[SessionStatus]
    totals: Totals


class Fault(Reply):
    """Description of an error."""

    code: ErrorCode
    message: str
    request_id: str


class ErrorReply(Reply):
    """The body of every reply with a status of 400 or more."""

    error: Fault
