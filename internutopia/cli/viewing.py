"""Options `--viewer` and `--viewer-address` of commands."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from internutopia.viewer.viewer import Viewer

LOOPBACK = '127.0.0.1:0'
_MAX_PORT = 65535


def open_viewer(env: Any, address: str, paused: bool = True) -> Viewer:
    """Show envs in real time at an address `HOST:PORT`, and print where; `paused`, the first step waits for a page.

    ValueError if the address is none, or the envs cannot be shown; other errors are those of `viewer.attach`.
    """
    from internutopia.viewer import attach

    host, colon, port = address.rpartition(':')
    if not (colon and host and port.isdecimal() and int(port) <= _MAX_PORT):
        raise ValueError(f'--viewer-address {address}: expected HOST:PORT, such as 127.0.0.1:8080 or 0.0.0.0:8080')
    try:
        viewer = attach(env, host=host.strip('[]'), port=int(port), speed=1.0, paused=paused)
    except NotImplementedError as error:
        raise ValueError(f'--viewer: {error}') from error
    url = viewer.url
    if '//0.0.0.0:' in url:
        url = url.replace('0.0.0.0', _own_address())
    print(f'viewer: open {url}' + (' and press Run there' if paused else ''), flush=True)
    return viewer


def _own_address() -> str:
    """Return the address of this machine for others; 0.0.0.0 if it has no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(('192.0.2.1', 9))  # nothing is sent; the address is kept free for documentation (RFC 5737)
        except OSError:
            return '0.0.0.0'
        return probe.getsockname()[0]
