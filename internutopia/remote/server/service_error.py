"""Errors that are sent to clients."""

from __future__ import annotations

from collections.abc import Mapping

from internutopia.remote.protocol import ErrorCode


class ServiceError(Exception):
    """Error reply to a request.

    Args:
        status: HTTP status.
        code: which kind of fault.
        message: what is wrong, where, and what would be right.
        headers: further headers of the reply.
    """

    def __init__(self, status: int, code: ErrorCode, message: str, headers: Mapping[str, str] | None = None):
        super().__init__(status, code, message, headers)  # it can be pickled
        self.status = status
        self.code: ErrorCode = code
        self.message = message
        self.headers = dict(headers or {})

    def __str__(self) -> str:
        return self.message

    def copy(self) -> ServiceError:
        """Return a copy to raise again: an exception keeps the frames alive that it passed through."""
        return ServiceError(self.status, self.code, self.message, self.headers)


def retry_later(status: int, code: ErrorCode, message: str, seconds: float = 1.0) -> ServiceError:
    """Return the error for a request that was not done and may be repeated after some time [s]."""
    return ServiceError(status, code, message, {'Retry-After': str(max(1, round(seconds)))})


def shutting_down() -> ServiceError:
    """Return the error of a server that takes no more calls."""
    return retry_later(503, 'shutting_down', 'the server is shutting down')


def invalid(message: str) -> ServiceError:
    """Return the error for a request that is well-formed but invalid."""
    return ServiceError(422, 'invalid', message)
