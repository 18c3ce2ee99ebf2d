"""Options `--viewer` and `--viewer-address` of commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from internutopia.viewer.viewer import Viewer

LOOPBACK = '127.0.0.1:0'
_MAX_PORT = 65535


def open_viewer(env: Any, address: str) -> Viewer:
    """Show envs in real time at an address `HOST:PORT`, and print where; the first step waits for a page.

    ValueError if the address is none, or the envs cannot be shown; other errors are those of `viewer.attach`.
    """
    from internutopia.viewer import attach

    host, colon, port = address.rpartition(':')
    if not (colon and host and port.isdecimal() and int(port) <= _MAX_PORT):
        raise ValueError(f'--viewer-address {address}: expected HOST:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080')
    try:
        viewer = attach(env, host=host.strip('[]'), port=int(port), speed=1.0, paused=True)
    except NotImplementedError as error:
        raise ValueError(f'--viewer: {error}') from error
    print(f'viewer: open {viewer.url} and press Run there', flush=True)
    return viewer
