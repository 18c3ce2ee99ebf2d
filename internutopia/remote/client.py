"""HTTP client whose calls return a reply, or raise a `RemoteError` before their timeout.

Transient failures are retried with exponential backoff and jitter: connections that fail or break, replies
that do not come, a busy server. All attempts of a call carry the same idempotency key, so that a server does it only
once. A call that was given up, or interrupted, and is made once more before any other carries its key again.

Each attempt leaves a line in the log, with `method`, `path`, `status`, `ms`, `request_id` and `attempt` as attributes
of the record.
"""

from __future__ import annotations

import itertools
import logging
import random
import re
import time
import uuid
from typing import Any, Self, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from internutopia.remote.call_errors import (
    AuthError,
    InvalidRequestError,
    LimitError,
    RemoteError,
    ServerUnavailableError,
    SessionLostError,
)
from internutopia.remote.protocol import KEY_HEADER, PREFIX, REQUEST_HEADER, Reply
from internutopia.util.call_guard import CallGuard, closing, exclusive
from internutopia.util.encoding import MSGPACK, MalformedError, decode, encode

logger = logging.getLogger(__name__)

ReplyT = TypeVar('ReplyT', bound=Reply)

DEFAULT_TIMEOUT = 60.0
"""Longest time of a call with all its attempts [s]."""
CONNECT_TIMEOUT = 5.0
"""Longest wait for a connection, per attempt [s]."""
READ_TIMEOUT = 20.0
"""Longest silence while waiting for a reply, per attempt [s]; then the call is repeated and joins the first."""
MIN_BACKOFF, MAX_BACKOFF = 0.05, 2.0
"""Pauses between attempts double from the least to the largest [s]; each is shortened at random by up to a half."""

_ERROR_TYPES: dict[str, type[RemoteError]] = {
    'unauthorized': AuthError,
    'wrong_host': AuthError,
    'unknown_session': SessionLostError,
    'session_failed': SessionLostError,
    'busy': LimitError,
    'rate_limited': LimitError,
    'too_many_sessions': LimitError,
    'too_many_envs': LimitError,
    'too_large': LimitError,
    'overloaded': ServerUnavailableError,
    'shutting_down': ServerUnavailableError,
}
_TRANSIENT = frozenset({'busy', 'rate_limited', 'overloaded', 'shutting_down'})
_GATEWAY_STATUSES = frozenset({502, 503, 504})
"""Statuses of a proxy whose server does not answer."""


class Client:
    """HTTP client of one user of one server.

    Args:
        base_url: of the server, such as `'http://127.0.0.1:8001'`.
        user_token: of the user; None for a server without users.
        timeout: longest time of a call with all its attempts [s].

    Raises:
        ValueError: the URL is none of http or https, the token is no printable ASCII or the time is not positive.
    """

    def __init__(self, base_url: str, user_token: str | None = None, timeout: float = DEFAULT_TIMEOUT):
        self._guard = CallGuard(self)
        if not timeout > 0.0:
            raise ValueError(f'timeout must be a positive number of seconds, got {timeout!r}')
        if user_token is not None and not re.fullmatch('[!-~]+', user_token):
            raise ValueError('user_token must be printable ASCII without spaces')  # without showing it
        try:
            url = httpx.URL(base_url)
        except httpx.InvalidURL as error:
            raise ValueError(f'base_url={base_url!r}: {error}') from None
        if url.scheme not in ('http', 'https') or not url.host:
            raise ValueError(f"base_url={base_url!r}: expected something like 'http://127.0.0.1:8001'")
        self.base_url = base_url.rstrip('/')
        self.timeout = timeout
        headers = {'Content-Type': MSGPACK, 'Accept': MSGPACK, 'Accept-Encoding': 'identity'}
        if user_token is not None:
            headers['Authorization'] = f'Bearer {user_token}'
        self._http = httpx.Client(base_url=self.base_url + PREFIX, headers=headers)
        self._unresolved: tuple[str, bytes, str] | None = None  # path, body and key of the last call, if given up

    @exclusive
    def get(self, path: str, reply: type[ReplyT]) -> ReplyT:
        """GET a path below `/api/v1/`. Raises: as `post`."""
        return self._call('GET', path, b'', reply, self.timeout)

    @exclusive
    def post(self, path: str, request: BaseModel, reply: type[ReplyT], timeout: float | None = None) -> ReplyT:
        """POST a request to a path below `/api/v1/`, within `timeout` [s] if that differs from the client's.

        Raises:
            RemoteError: see its subclasses.
        """
        return self._call('POST', path, encode(request, MSGPACK), reply, timeout or self.timeout)

    def post_once(self, path: str, request: BaseModel, reply: type[ReplyT], timeout: float) -> ReplyT:
        """POST a request that does no harm if it is done twice: tried once, without a key, even alongside other calls.

        Raises:
            RemoteError: see its subclasses; also when this is closed.
        """
        if self._http.is_closed:
            raise RemoteError(f'POST {path}: the connection to {self.base_url} is closed')
        deadline = time.monotonic() + timeout
        return _parsed(reply, self._attempt('POST', path, encode(request, MSGPACK), None, deadline, 1), f'POST {path}')

    @closing
    def close(self) -> None:
        """Close the connections; idempotent."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, path: str, content: bytes, reply: type[ReplyT], timeout: float) -> ReplyT:
        last, self._unresolved = self._unresolved, None
        key = last[2] if last and last[:2] == (path, content) else uuid.uuid4().hex
        try:
            return _parsed(reply, self._call_with_retries(method, path, content, key, timeout), f'{method} {path}')
        except BaseException as error:  # also a KeyboardInterrupt
            if not isinstance(error, RemoteError) or error.retry_after is not None:
                self._unresolved = path, content, key
            raise

    def _call_with_retries(self, method: str, path: str, content: bytes, key: str, timeout: float) -> Any:
        """Return the body of the reply, after as many attempts as needed within the timeout."""
        deadline = time.monotonic() + timeout
        for attempt in itertools.count(1):
            try:
                return self._attempt(method, path, content, key, deadline, attempt)
            except RemoteError as error:
                if error.retry_after is None:
                    raise
                backoff = min(MIN_BACKOFF * 2.0 ** (attempt - 1), MAX_BACKOFF) * random.uniform(0.5, 1.0)
                backoff = max(backoff, error.retry_after)
                if time.monotonic() + backoff >= deadline:
                    error.add_note(f'gave up after {attempt} attempts in {timeout:g} s')
                    raise
            time.sleep(backoff)

    def _attempt(self, method: str, path: str, content: bytes, key: str | None, deadline: float, attempt: int) -> Any:
        """Return the decoded body of the reply to one request."""
        begin = time.monotonic()
        left = max(deadline - begin, MIN_BACKOFF)
        limits = httpx.Timeout(min(READ_TIMEOUT, left), connect=min(CONNECT_TIMEOUT, left))
        headers = {KEY_HEADER: key} if key is not None and method == 'POST' else {}
        try:
            with self._http.stream(method, path, content=content, headers=headers, timeout=limits) as response:
                chunks = []
                for chunk in response.iter_raw():
                    chunks.append(chunk)
                    if time.monotonic() > deadline:  # a reply in drops
                        raise httpx.ReadTimeout('the reply did not end')
        except httpx.TransportError as error:
            why = f'{type(error).__name__}: {error}'.rstrip(': ')
            _log(logging.WARNING, method, path, why, begin, None, attempt)
            message = f'{method} {path}: no answer from {self.base_url} ({why})'
            # a certificate that is not trusted now will not be in a second
            again = None if 'CERTIFICATE_VERIFY_FAILED' in why else 0.0
            raise ServerUnavailableError(message, 'unreachable', retry_after=again) from error
        request_id = response.headers.get(REQUEST_HEADER)
        level = logging.INFO if response.is_success else logging.WARNING
        _log(level, method, path, response.status_code, begin, request_id, attempt)
        if response.is_success:
            return _decoded(response, b''.join(chunks), f'{method} {path}')
        raise _error_of(response, b''.join(chunks), f'{method} {path}')


def _parsed(reply: type[ReplyT], message: Any, call: str) -> ReplyT:
    try:
        return reply.model_validate(message)
    except ValidationError as error:
        raise RemoteError(f'{call}: the reply is invalid: {error}') from error


def _decoded(response: httpx.Response, body: bytes, call: str) -> Any:
    media_type = response.headers.get('Content-Type', '').partition(';')[0].strip().lower()
    try:
        return decode(body, media_type)
    except MalformedError as error:
        raise RemoteError(f'{call}: the reply cannot be read: {error}', status=response.status_code) from error


def _error_of(response: httpx.Response, body: bytes, call: str) -> RemoteError:
    """Return the error in a reply; one that a proxy sent, not the server, is classified by its status."""
    status = response.status_code
    try:
        fault = _decoded(response, body, call)['error']
        code, message, request_id = (str(fault[name]) for name in ('code', 'message', 'request_id'))
    except (RemoteError, TypeError, KeyError):
        request_id = None
        code = 'overloaded' if status in _GATEWAY_STATUSES else 'unauthorized' if status in (401, 403) else ''
        message = f'HTTP {status} {response.reason_phrase}, not from a server of InternUtopia'
    kind = _ERROR_TYPES.get(code, InvalidRequestError if 400 <= status < 500 else RemoteError)
    retry_after = _seconds(response.headers.get('Retry-After')) if code in _TRANSIENT else None
    return kind(f'{call}: {message}', code, status, request_id, retry_after)


def _seconds(text: str | None) -> float:
    try:
        return max(0.0, float(text or 0.0))
    except ValueError:  # a date: the usual pauses do
        return 0.0


def _log(
    level: int, method: str, path: str, status: int | str, begin: float, request_id: str | None, attempt: int
) -> None:
    ms = 1000.0 * (time.monotonic() - begin)
    extra = {'method': method, 'path': path, 'status': status, 'ms': ms, 'request_id': request_id, 'attempt': attempt}
    text = '%s %s: %s in %.1f ms (request %s, attempt %d)'
    logger.log(level, text, method, path, status, ms, request_id or '-', attempt, extra=extra)
