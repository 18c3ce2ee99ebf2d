"""Settings of the server: what it allows."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, IPvAnyNetwork, PositiveFloat, PositiveInt

from internutopia.remote.encoding import MAX_ITEMS
from internutopia.remote.protocol import Limits

_MIB = 1 << 20


class Settings(BaseModel):
    """Limits; what is beyond them is refused before anything is done."""

    model_config = ConfigDict(extra='forbid', frozen=True, use_attribute_docstrings=True)

    max_sessions: PositiveInt = 64
    """Sessions at a time, of all users."""
    user_sessions: PositiveInt = 4
    """Sessions of a user at a time."""
    user_envs: Annotated[int, Field(ge=1, le=MAX_ITEMS)] = 1024
    """Envs of a user, over all sessions."""
    requests_per_second: PositiveFloat = 200.0
    """Requests of a user, over a longer time."""
    burst: PositiveInt = 400
    """Requests of a user that may come at once."""
    max_body: PositiveInt = 16 * _MIB
    """Size of a request's body [bytes]."""
    max_json: PositiveInt = _MIB
    """Size of a request's body in JSON [bytes]: while it is read, which takes long, all users wait."""
    max_reply: PositiveInt = 64 * _MIB
    """Size of the observations in a reply [bytes]."""
    max_step_size: Annotated[int, Field(ge=1, le=MAX_ITEMS)] = 1000
    """Steps of a call."""
    idle_timeout: PositiveFloat = 900.0
    """A session that is not stepped, reset or looked at for this long ends [s]."""
    call_timeout: PositiveFloat = 300.0
    """A session whose worker takes longer for a call is ended [s]."""
    header_timeout: PositiveFloat = 10.0
    """Time for the header of a request to arrive, from the begin of the connection or the last reply on [s]."""
    body_timeout: PositiveFloat = 30.0
    """Time for the body of a request to arrive [s]."""
    reply_timeout: PositiveFloat = 30.0
    """A connection of which the client takes nothing of a reply for this long is ended [s]."""
    drain_timeout: PositiveFloat = 25.0
    """Time that calls at work have to finish when the server is told to stop [s]."""
    waiting: PositiveInt = 4
    """Calls of a session that wait for the one at work; as many requests for its picture, and repeated requests."""
    in_flight: PositiveInt = 256
    """Requests at work, of all users."""
    user_in_flight: PositiveInt = 64
    """Requests of a user, from their header to the last byte of their reply."""
    connections: PositiveInt = 1024
    """Open connections."""
    address_connections: PositiveInt = 512
    """Open connections of an address."""
    address_requests_per_second: PositiveFloat = 50.0
    """Requests without a valid token from an address, over a longer time."""
    address_burst: PositiveInt = 200
    """Requests without a valid token from an address that may come at once."""
    trusted_proxies: tuple[IPvAnyNetwork, ...] = ()
    """Proxies, whose word for the address of a client (`X-Forwarded-For`) is taken."""
    kept_replies: PositiveInt = 16
    """Replies that a session keeps for repeated idempotency keys."""
    threads: PositiveInt = 1
    """Threads of physics of a session: a server runs many of them at a time."""
    picture_interval: PositiveFloat = 1.0
    """Time between two pictures of a session [s]."""

    def limits(self) -> Limits:
        """What a client is told."""
        return Limits(
            max_sessions=self.user_sessions,
            max_envs=self.user_envs,
            max_body=self.max_body,
            max_reply=self.max_reply,
            max_step_size=self.max_step_size,
            requests_per_second=self.requests_per_second,
            idle_timeout=self.idle_timeout,
        )
