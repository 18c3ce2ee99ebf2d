"""Errors of a call to a server, one class for each thing that a caller can do about it."""

from __future__ import annotations


class RemoteError(Exception):
    """A call failed.

    Attributes:
        message: what went wrong, and where.
        code: the server's word for it (`protocol.ErrorCode`), or `'unreachable'`, `'version'`.
        status: HTTP status of the answer; None if there was none.
        request_id: what the server's log calls the request; None if there was no answer.
        retry_after: the same call may be made again after so many seconds, and is not done twice; None: no use.
    """

    def __init__(
        self,
        message: str,
        code: str = 'internal',
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ):
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after


class AuthError(RemoteError):
    """The token is missing or wrong."""


class SessionLostError(RemoteError):
    """The session is gone: closed, expired, of a server that was restarted, or failed. Make a new one."""


class LimitError(RemoteError):
    """More than the server allows: sessions, envs, bytes or requests."""


class InvalidRequestError(RemoteError, ValueError):
    """The server refuses what was asked for, naming what is wrong; nothing has moved."""


class ServerUnavailableError(RemoteError):
    """No answer within the time that was given, or a server that is too busy or about to stop.

    The call may have been done; the same call once more, before any other, is not done twice.
    """


class VersionMismatchError(RemoteError):
    """This client and the server do not understand each other."""
