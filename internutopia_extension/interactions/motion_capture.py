"""Client of a motion-capture server: the poses of a person's hands, from a camera."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

_ANSWER = 10.0  # s that the server has to answer


class MocapInteraction:
    """Motion-capture server over HTTP: GET `/start`, `/results` (JSON) and `/stop`.

    Args:
        mocap_url: address of the server, such as `http://127.0.0.1:5001`.
    """

    def __init__(self, mocap_url: str):
        self._url = mocap_url.rstrip('/')

    def server_start(self) -> None:
        """Start the server. ConnectionError naming the address if it does not answer."""
        self._get('start')

    def step(self) -> dict[str, Any]:
        """Return the server's result. ConnectionError naming the address without an answer; ValueError if no JSON."""
        return json.loads(self._get('results'))

    def server_stop(self) -> None:
        """Stop the server. ConnectionError naming the address if it does not answer."""
        self._get('stop')

    def _get(self, call: str) -> bytes:
        url = f'{self._url}/{call}'
        try:
            with urlopen(url, timeout=_ANSWER) as response:  # the user's own address
                return response.read()
        except (URLError, TimeoutError) as error:
            raise ConnectionError(f'no motion-capture server answers at {url}: {error}') from error
