"""A server that watches a person with a camera and tells the poses of the hands."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

_ANSWER = 10.0  # s that the server has to answer


class MocapInteraction:
    """Asks a motion-capture server over HTTP: GET `/start`, `/results` (JSON) and `/stop`.

    Args:
        mocap_url: address of the server, such as `http://127.0.0.1:5001`.
    """

    def __init__(self, mocap_url: str):
        self._url = mocap_url.rstrip('/')

    def server_start(self) -> None:
        """Have the server begin. ConnectionError naming the address if it does not answer."""
        self._get('start')

    def step(self) -> dict[str, Any]:
        """What the server sees now. ConnectionError naming the address if it does not answer; ValueError if no JSON."""
        return json.loads(self._get('results'))

    def server_stop(self) -> None:
        """Have the server end. ConnectionError naming the address if it does not answer."""
        self._get('stop')

    def _get(self, call: str) -> bytes:
        url = f'{self._url}/{call}'
        try:
            with urlopen(url, timeout=_ANSWER) as response:  # the user's own address
                return response.read()
        except (URLError, TimeoutError) as error:
            raise ConnectionError(f'no motion-capture server answers at {url}: {error}') from error
