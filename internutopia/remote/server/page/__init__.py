"""Page at the server's root: static files, and the headers that a browser runs them under.

They hold nothing but the page itself, so they need no token: it asks for one and fetches all it shows from the
service. Its addresses are relative, so that it also works under a path of a reverse proxy.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

_TYPES = {'.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.svg': 'image/svg+xml'}
# read once: no name that a client sends becomes a path
_FILES = {
    file.name: (file.read_bytes(), _TYPES[file.suffix])
    for file in Path(__file__).parent.iterdir()
    if file.suffix in _TYPES
}
_HEADERS = {
    # scripts, styles and data come from this server alone; the picture is a blob made of the server's answer
    'Content-Security-Policy': "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    'X-Content-Type-Options': 'nosniff',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'no-cache',
}

router = APIRouter(include_in_schema=False)


@router.get('/')
async def index() -> Response:
    """The page."""
    return await file('index.html')


@router.get('/page/{name}')
async def file(name: str) -> Response:
    """A file of the page; 404 for any other name."""
    if name not in _FILES:
        raise HTTPException(404, f'the page has no file {name!r}')
    content, media_type = _FILES[name]
    return Response(content, media_type=media_type, headers=_HEADERS)
