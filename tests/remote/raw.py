"""A client that sends what it is told, so that a server can be asked for the impossible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from waiting import PATIENCE

from internutopia.remote.protocol import KEY_HEADER, PREFIX
from internutopia.util.encoding import MSGPACK, decode, encode


@dataclass(frozen=True)
class Answer:
    """Status, decoded body and headers of a reply."""

    status: int
    body: Any
    headers: httpx.Headers

    @property
    def fault(self) -> tuple[int, str]:
        """Status and code of an error, whose body must be complete."""
        error = self.body['error']
        assert set(error) == {'code', 'message', 'request_id'} and all(error.values())
        assert error['request_id'] == self.headers['x-request-id']
        assert 'Traceback' not in error['message'] and '.py' not in error['message']
        return self.status, error['code']

    @property
    def message(self) -> str:
        return self.body['error']['message']


class Raw:
    """Calls of one user."""

    def __init__(self, url: str, token: str | None = None):
        headers = {} if token is None else {'Authorization': f'Bearer {token}'}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=PATIENCE)

    def get(self, path: str, **options: Any) -> Answer:
        return self._answer(self.http.get(PREFIX + path, **options))

    def post(
        self, path: str, message: Any = None, *, key: str | None = None, media: str = MSGPACK, **headers: str
    ) -> Answer:
        """POST a message, or bytes as they are."""
        body = message if isinstance(message, bytes) else encode(message or {}, media)
        headers |= {'Content-Type': media} | ({} if key is None else {KEY_HEADER: key})
        return self._answer(self.http.post(PREFIX + path, content=body, headers=headers))

    def session(self, num_envs: int, seed: int = 0, **options: Any) -> RawSession:
        """A new session with handles of all envs, reset."""
        created = self.post('/session/create', {'num_envs': num_envs, 'seed': seed}, **options)
        assert created.status == 200, created.body
        return RawSession(self, created.body['session_id'], num_envs)

    @staticmethod
    def _answer(response: httpx.Response) -> Answer:
        media = response.headers['content-type'].partition(';')[0]
        known = media in ('application/json', MSGPACK)
        return Answer(
            response.status_code, decode(response.content, media) if known else response.content, response.headers
        )


class RawSession:
    """A session whose envs all have a handle and an episode."""

    def __init__(self, caller: Raw, session_id: str, num_envs: int):
        self.caller = caller
        self.id = session_id
        made = caller.post('/episode/create', {'session_id': session_id, 'count': num_envs})
        assert made.status == 200 and made.body['total'] == num_envs
        self.episode_ids: list[str] = made.body['episode_ids']
        self.start = self.reset().body

    def reset(self, rows: list[int] | None = None, **fields: Any) -> Answer:
        """Reset the envs of some handles, all of them by default."""
        ids = self.episode_ids if rows is None else [self.episode_ids[row] for row in rows]
        return self._post('/episode/vectorized_reset', {'episode_ids': ids, **fields})

    def step(self, actions: Any = None, key: str | None = None, media: str = MSGPACK, **fields: Any) -> Answer:
        """Step all envs; without actions they do nothing."""
        actions = np.zeros((len(self.episode_ids), 1), np.float32) if actions is None else actions
        message = {'episode_ids': self.episode_ids, 'actions': actions, **fields}
        return self._post('/episode/vectorized_step', message, key=key, media=media)

    def state(self) -> Answer:
        return self.caller.get(f'/session/{self.id}')

    def close(self) -> Answer:
        return self.caller.post('/session/close', {'session_id': self.id})

    def _post(self, path: str, message: dict[str, Any], **options: Any) -> Answer:
        return self.caller.post(path, {'session_id': self.id, **message}, **options)
