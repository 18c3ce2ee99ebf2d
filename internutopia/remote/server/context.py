"""Context of a request, besides what its sender wrote: kept in the ASGI scope, from the middleware to the reply."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from internutopia.remote.protocol import ErrorCode
from internutopia.remote.server.session_manager import SessionManager
from internutopia.remote.server.users import User

_KEY = 'internutopia'


@dataclass
class Context:
    """Id of a request, its sender, and the reason for which it was refused."""

    request_id: str
    user: User | None = None
    fault: ErrorCode | None = None

    @classmethod
    def open(cls, scope: MutableMapping[str, Any], request_id: str) -> Context:
        """Create the context of a new request."""
        context = scope[_KEY] = cls(request_id)
        return context

    @classmethod
    def of(cls, request: Request) -> Context:
        """Return the context of a request."""
        return request.scope[_KEY]


async def caller(request: Request) -> User:
    """Return the user who sent a request."""
    user = Context.of(request).user
    assert user is not None  # the middleware refuses requests without one
    return user


async def session_manager(request: Request) -> SessionManager:
    """Return the session manager of the server."""
    return request.app.state.session_manager
