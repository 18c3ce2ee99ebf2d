"""Page at the server's root: static files, and the headers that a browser runs them under.

They hold nothing but the page itself, so they need no token: it prompts for one and fetches all it shows from the
service. Its addresses are relative, so that it also works under a path of a reverse proxy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

from internutopia.remote.server.http_bodies import replies

_TYPES = {'.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.svg': 'image/svg+xml'}
# read once: no name that a client sends becomes a path
_FILES = {
    file.name: (file.read_bytes(), _TYPES[file.suffix])
    for file in Path(__file__).parent.iterdir()
    if file.suffix in _TYPES
}
_HEADERS = {
    # scripts, styles and data come from this server alone; the image is a blob made of the server's answer
    'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-cache',
}


def _content(*media_types: str) -> dict[str, Any]:
    return {media_type: {'schema': {'type': 'string'}} for media_type in media_types}


router = APIRouter(tags=['page'])


@router.get('/', **replies(None, content=_content('text/html')))
async def index() -> Response:
    """Serve the page."""
    return await file('index.html')


@router.get('/page/{name}', **replies(None, 404, content=_content(*_TYPES.values())))
async def file(name: str) -> Response:
    """Serve a file of the page; 404 for any other name."""
    if name not in _FILES:
        raise HTTPException(404, f'the page has no file {name!r}')
    content, media_type = _FILES[name]
    return Response(content, media_type=media_type, headers=_HEADERS)
