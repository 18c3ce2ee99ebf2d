"""Settings of the server."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, IPvAnyNetwork, PositiveFloat, PositiveInt

from internutopia.remote.protocol import Limits
from internutopia.util.encoding import MAX_ITEMS

_MIB = 1 << 20


class Settings(BaseModel):
    """Limits of the server; requests beyond them are refused before anything is done."""

    model_config = ConfigDict(extra='forbid', frozen=True, use_attribute_docstrings=True)

    max_sessions: PositiveInt = 64
    """Maximum number of concurrent sessions of all users."""
    user_sessions: PositiveInt = 4
    """Maximum number of concurrent sessions of a user."""
    user_envs: Annotated[int, Field(ge=1, le=MAX_ITEMS)] = 1024
    """Maximum number of envs of a user, over all sessions."""
    requests_per_second: PositiveFloat = 200.0
    """Sustained request rate of a user [1/s]."""
    burst: PositiveInt = 400
    """Burst of requests of a user."""
    max_body: PositiveInt = 16 * _MIB
    """Maximum size of a request's body [bytes]."""
    max_json: PositiveInt = _MIB
    """Maximum size of a request's body in JSON [bytes]: reading it is slow and blocks all users."""
    max_reply: PositiveInt = 64 * _MIB
    """Maximum size of the observations in a reply [bytes]."""
    max_step_size: Annotated[int, Field(ge=1, le=MAX_ITEMS)] = 1000
    """Maximum number of steps of a call."""
    idle_timeout: PositiveFloat = 900.0
    """Time after which a session that is not stepped, reset or viewed ends [s]."""
    call_timeout: PositiveFloat = 300.0
    """Time that a worker may take for a call before its session is ended [s]."""
    header_timeout: PositiveFloat = 10.0
    """Time for the header of a request to arrive, from the start of the connection or the last reply [s]."""
    body_timeout: PositiveFloat = 30.0
    """Time for the body of a request to arrive [s]."""
    reply_timeout: PositiveFloat = 30.0
    """Time after which a connection whose client reads nothing of a reply is ended [s]."""
    drain_timeout: PositiveFloat = 25.0
    """Time that calls at work have to finish when the server is stopped [s]."""
    waiting: PositiveInt = 4
    """Maximum number of waiting calls of a session; also of image requests, and of repeated requests."""
    in_flight: PositiveInt = 256
    """Maximum number of requests at work, of all users."""
    user_in_flight: PositiveInt = 64
    """Maximum number of requests of a user in flight, from their header to the last byte of their reply."""
    connections: PositiveInt = 1024
    """Maximum number of open connections."""
    address_connections: PositiveInt = 512
    """Maximum number of open connections of an address."""
    address_requests_per_second: PositiveFloat = 50.0
    """Sustained rate of requests without a valid token from an address [1/s]."""
    address_burst: PositiveInt = 200
    """Burst of requests without a valid token from an address."""
    trusted_proxies: tuple[IPvAnyNetwork, ...] = ()
    """Proxies whose `X-Forwarded-For` is trusted for the address of a client."""
    kept_replies: PositiveInt = 16
    """Number of replies that a session keeps for repeated idempotency keys."""
    threads: PositiveInt = 1
    """Physics threads of a session; a server runs many sessions at once."""
    picture_interval: PositiveFloat = 1.0
    """Minimum time between two images of a session [s]."""

    def limits(self) -> Limits:
        """Return the limits that are sent to a client."""
        return Limits(
            max_sessions=self.user_sessions,
            max_envs=self.user_envs,
            max_body=self.max_body,
            max_reply=self.max_reply,
            max_step_size=self.max_step_size,
            requests_per_second=self.requests_per_second,
            idle_timeout=self.idle_timeout,
        )
