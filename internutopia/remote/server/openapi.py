"""OpenAPI description of bodies, which FastAPI does not read and write itself."""

from __future__ import annotations

from typing import Any

from fastapi.responses import JSONResponse
from pydantic import BaseModel

from internutopia.remote.encoding import JSON, MSGPACK
from internutopia.remote.protocol import ErrorReply, Request

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


def replies(message: type[BaseModel] | None, *faults: int, content: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return arguments of a route that document its replies: a message, or content of other media types."""
    success: dict[str, Any] = {'description': 'Done.'}
    if message is not None:
        success |= _message(message)
    if content is not None:
        success['content'] = content
    responses: dict[int, Any] = {200: success}
    for status in sorted({*faults, *_ALWAYS}):
        responses[status] = {'description': _FAULTS[status], **_message(ErrorReply)}
    return {
        'response_model': None,
        'response_class': JSONResponse,  # only named: all routes return responses
        'responses': responses,
    }


def _message(model: type[BaseModel]) -> dict[str, Any]:
    """Return a reply with msgpack added: FastAPI defines the model and documents JSON only."""
    schema = {'$ref': f'#/components/schemas/{model.__name__}'}
    return {'model': model, 'content': {MSGPACK: {'schema': schema}}}


def body(message: type[Request]) -> dict[str, Any]:
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
