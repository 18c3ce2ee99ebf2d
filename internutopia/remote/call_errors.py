"""Errors of a call to a server, one class for each way to handle them."""

from __future__ import annotations


class RemoteError(Exception):
    """A call failed.

    Attributes:
        message: what went wrong, and where.
        code: the server's error code (`protocol.ErrorCode`), or `'unreachable'`, `'version'`.
        status: HTTP status of the answer; None if there was none.
        request_id: id of the request in the server's log; None if there was no answer.
        retry_after: seconds after which the call may be repeated (it is not done twice); None if that is of no use.
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
    """The server refused the request and named the fault; no env has moved."""


class ServerUnavailableError(RemoteError):
    """No answer within the time that was given, or a server that is too busy or about to stop.

    The call may have been done; the same call once more, before any other, is not done twice.
    """


class VersionMismatchError(RemoteError):
    """This client and the server have incompatible versions."""
