"""Bodies of requests and replies: msgpack or JSON, according to the headers; and their OpenAPI description.

FastAPI reads, writes and describes none of them itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import reprlib
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError

from internutopia.remote import protocol
from internutopia.remote.server.reply_cache import Body
from internutopia.remote.server.server_settings import Settings
from internutopia.remote.server.service_error import ServiceError, invalid
from internutopia.remote.server.users import User
from internutopia.util.encoding import JSON, MSGPACK, MalformedError, decode, encode

_MEDIA_TYPES = (MSGPACK, JSON)
_FAULTS_SHOWN = 3
_LONGEST_NAME = 40
_KEY = 'internutopia'  # of the context in the ASGI scope
_FAULTS = {
    400: 'The body is no message.',
    401: 'No token, or an unknown one.',
    403: 'A server without tokens was called by a name that is not of this machine.',
    404: 'There is no such thing, or it is not yours.',
    409: 'Not possible in the present state.',
    413: 'The body is too large.',
    415: 'The body is of an unknown type.',
    422: 'The message makes no sense; nothing has changed.',
    429: 'Not now; nothing has changed. `Retry-After` says when to try again.',
    500: 'A mistake of the server.',
    503: 'The session failed, or the server is too busy or shutting down.',
}
_ALWAYS = 401, 403, 429, 500, 503

T = TypeVar('T', bound=protocol.Request)


def reader(model: type[T]) -> Callable[[Request], Awaitable[T]]:
    """Return a dependency that reads a request's body into a model. ServiceError if it is too large or invalid."""

    async def read(request: Request) -> T:
        media_type = _content_type(request)
        if media_type not in _MEDIA_TYPES:
            raise ServiceError(
                415, 'unsupported_type', f'Content-Type: expected {MSGPACK} or {JSON}, got {reprlib.repr(media_type)}'
            )
        body = await _received(request, media_type)
        try:
            return model.model_validate(decode(body, media_type))
        except MalformedError as error:
            raise ServiceError(400, 'malformed', str(error)) from None
        except ValidationError as error:
            raise invalid(_faults(error)) from None

    return read


def reply_type(request: Request) -> str:
    """Return the media type of the reply: the first known one of `Accept`, else that of the request, else JSON."""
    for wanted in request.headers.get('accept', '').split(','):
        name = wanted.partition(';')[0].strip().lower()
        if name in _MEDIA_TYPES:
            return name
    content_type = _content_type(request)
    return content_type if content_type in _MEDIA_TYPES else JSON


def reply(request: Request, message: Any) -> Body:
    """Return a message in the media type of the reply."""
    media_type = reply_type(request)
    return Body(encode(message, media_type), media_type)


def response(body: Body) -> Response:
    """Return a reply as a Starlette response."""
    return Response(body.data, media_type=body.media_type)


def error_response(request: Request, error: ServiceError) -> Response:
    """Return an error in the media type of the reply."""
    context = Context.of(request)
    context.fault = error.code
    fault = protocol.Fault(code=error.code, message=error.message, request_id=context.request_id)
    body = reply(request, protocol.ErrorReply(error=fault))
    return Response(body.data, error.status, error.headers, body.media_type)


async def fingerprint(request: Request) -> bytes:
    """Return a digest that distinguishes requests with the same idempotency key."""
    digest = hashlib.sha256(await request.body())
    for part in (request.url.path, _content_type(request), reply_type(request)):
        digest.update(b'\0' + part.encode())
    return digest.digest()


async def _received(request: Request, media_type: str) -> bytes:
    """Receive the body. ServiceError if it is too large, or does not arrive in time."""
    settings: Settings = request.app.state.session_manager.settings
    most = min(settings.max_body, settings.max_json) if media_type == JSON else settings.max_body
    too_large = ServiceError(413, 'too_large', f'the body is larger than {most} bytes, the most in {media_type}')
    if int(request.headers.get('content-length', 0)) > most:  # a number, or it would not have come this far
        raise too_large
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.body_timeout):
            async for chunk in request.stream():
                size += len(chunk)
                if size > most:
                    raise too_large
                chunks.append(chunk)
    except TimeoutError:
        raise ServiceError(400, 'malformed', f'the body did not arrive within {settings.body_timeout:g} s') from None
    body = b''.join(chunks)
    request._body = body  # of a stream that was read, so that `fingerprint` finds it
    return body


def _content_type(request: Request) -> str:
    return request.headers.get('content-type', '').partition(';')[0].strip().lower()


def _faults(error: ValidationError) -> str:
    """Return the first validation errors, each with its location."""
    faults = error.errors(include_url=False, include_input=False, include_context=False)
    texts = [f'{_place(fault["loc"])}: {fault["msg"]}' for fault in faults[:_FAULTS_SHOWN]]
    more = len(faults) - len(texts)
    return '; '.join(texts) + (f'; and {more} more' if more else '')


def _place(location: tuple[int | str, ...]) -> str:
    """Return `episode_ids[3]` for `('episode_ids', 3)`; names that are no identifiers are quoted."""
    text = ''
    for part in location:
        if isinstance(part, int):
            text += f'[{part}]'
        else:
            known = part.isascii() and part.isidentifier() and len(part) < _LONGEST_NAME
            text += f'.{part if known else reprlib.repr(part)}'
    return text.removeprefix('.') or 'body'


@dataclass
class Context:
    """Id of a request, its sender, and the reason for which it was refused: kept in the ASGI scope."""

    request_id: str
    user: User | None = None
    fault: protocol.ErrorCode | None = None

    @classmethod
    def open(cls, scope: MutableMapping[str, Any], request_id: str) -> Context:
        """Create the context of a new request."""
        context = scope[_KEY] = cls(request_id)
        return context

    @classmethod
    def of(cls, request: Request) -> Context:
        """Return the context of a request."""
        return request.scope[_KEY]


def replies(message: type[BaseModel] | None, *faults: int, content: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return arguments of a route that document its replies: a message, or content of other media types."""
    success: dict[str, Any] = {'description': 'Done.'}
    if message is not None:
        success |= _message(message)
    if content is not None:
        success['content'] = content
    responses: dict[int, Any] = {200: success}
    for status in sorted({*faults, *_ALWAYS}):
        responses[status] = {'description': _FAULTS[status], **_message(protocol.ErrorReply)}
    return {
        'response_model': None,
        'response_class': JSONResponse,  # only named: all routes return responses
        'responses': responses,
    }


def _message(model: type[BaseModel]) -> dict[str, Any]:
    """Return a reply with msgpack added: FastAPI defines the model and documents JSON only."""
    schema = {'$ref': f'#/components/schemas/{model.__name__}'}
    return {'model': model, 'content': {MSGPACK: {'schema': schema}}}


def body(message: type[protocol.Request]) -> dict[str, Any]:
    """Return arguments of a route that document its body."""
    schema = message.model_json_schema()
    schema = _inlined(schema, schema.pop('$defs', {}))
    content = {media_type: {'schema': schema} for media_type in (JSON, MSGPACK)}
    return {'openapi_extra': {'requestBody': {'required': True, 'content': content}}}


def _inlined(schema: Any, parts: dict[str, Any]) -> Any:
    """Inline the references of a schema, which would otherwise be resolved against the whole document."""
    if isinstance(schema, list):
        return [_inlined(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if '$ref' in schema:
        return _inlined(parts[schema['$ref'].rpartition('/')[2]], parts)
    return {name: _inlined(each, parts) for name, each in schema.items()}
