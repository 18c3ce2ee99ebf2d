"""InternNav client: the agent server of InternNav, for its agents and those of its challenges.

`POST /agent/init` starts an agent by `agent_config` (`model_name`, `ckpt_path`, `model_settings`); the server knows it
by its `model_name`. `POST /agent/NAME/step` has `observation`, the base64 text of a pickled list with a dict for each
env, and answers `{'action': [{'action': [1], 'ideal_flag': true}, ...]}`; `POST /agent/NAME/reset` has `reset_index`,
the envs whose episodes begin. All but the observation is JSON, so that nothing that comes back is unpickled here.
(InternNav on GitHub, MIT: `internnav/agent/utils/server.py`, `internnav/configs/agent`. The package is on no index:
this was tested against messages that follow these files.)

An agent has the state of all its envs, by their places in the list. An env that does not ask has its last observation
there, and what is answered for it is not used. If the connection breaks, the server may be a new one, without the
agent: it is started again, and episodes that had begun have failed, as the agent knows nothing of them.
"""

from __future__ import annotations

import base64
import json
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from internutopia.evaluation.policy import PolicyError, Request
from internutopia.evaluation.protocols.batches import wait_for
from internutopia.evaluation.protocols.http_client import post
from internutopia.util.stopwatch import Stopwatch

_SHOWN = 2000  # characters of a server's message


class InternNavClient:
    """Client of an agent server of InternNav; see `internutopia.evaluation.protocols.connect`.

    Args:
        address: `internnav://HOST:PORT`.
        timeout: time that an answer may take [s].
        batched: is not used: a request is always that of all envs.
        agent: `agent_config` of the server.
    """

    def __init__(
        self, address: str, timeout: float, batched: bool | None = None, agent: Mapping[str, Any] | None = None
    ):
        self.messages = Stopwatch()
        self._address, self._timeout = address, timeout
        url = address.replace('internnav://', 'http://', 1).rstrip('/')
        headers = {'Content-Type': 'application/json'}
        self._http = httpx.Client(base_url=url, timeout=timeout, headers=headers, trust_env=False)
        self._config = {'ckpt_path': '', 'model_settings': {}} | dict(agent or {})
        if 'model_name' not in self._config:
            raise ValueError(f'policy {address}: the mapping needs agent: {{model_name: ...}}, an agent of InternNav')
        self._last: dict[int, Any] = {}  # observations, by env
        self._start()

    def infer(self, requests: Sequence[Request]) -> list[Any]:
        """Query the agent; see `Client`."""
        known = [request for request in requests if request.first or request.env_id in self._last]
        try:
            answers = self._asked(known) if known else {}
        except httpx.TransportError as error:
            self._start()
            raise PolicyError(f'the connection broke: {error or type(error).__name__}') from None
        lost = PolicyError('the agent was restarted during the episode, and has lost its state')
        return [answers.get(request.env_id, lost) for request in requests]

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _start(self) -> None:
        """Start the agent. PolicyGoneError if the server cannot be reached."""
        self._last.clear()
        message = {'agent_config': self._config}
        errors = (httpx.TransportError,)
        started = wait_for(lambda: self._posted('/agent/init', message), self._address, self._timeout, errors)
        self._name = str(started.get('agent_name', self._config['model_name']))

    def _asked(self, requests: Sequence[Request]) -> dict[int, Any]:
        """Return the answers to requests, by env. PolicyError if there are none; httpx.TransportError."""
        first = [request.env_id for request in requests if request.first]
        if first:
            self._posted(f'/agent/{self._name}/reset', {'reset_index': first})
        self._last |= {request.env_id: request.content for request in requests}
        filler = next(iter(self._last.values()))
        observations = [self._last.get(env_id, filler) for env_id in range(max(self._last) + 1)]
        with self.messages:
            text = base64.b64encode(pickle.dumps(observations)).decode()
        answer = self._posted(f'/agent/{self._name}/step', {'observation': text}).get('action')
        if not isinstance(answer, list) or len(answer) != len(observations):
            raise PolicyError(f'expected the actions of {len(observations)} envs, got {answer!r:.200}')
        return {request.env_id: _actions(answer[request.env_id]) for request in requests}

    def _posted(self, path: str, message: Any) -> dict[str, Any]:
        """Return the answer to a message. PolicyError for errors of the server; httpx.TransportError; see `post`."""
        status, data = post(self._http, path, json.dumps(message).encode(), self._address, self._timeout)
        try:
            content = json.loads(data) if httpx.codes.is_success(status) else None
        except ValueError as error:
            raise PolicyError(f'the reply cannot be read: {error}') from None
        if not isinstance(content, dict):
            text = data[:_SHOWN].decode(errors='replace')
            raise PolicyError(f'{path}: status {status} {httpx.codes.get_reason_phrase(status)}: {text}')
        return content


def _actions(answer: Any) -> Any:
    """Return the actions of an env as the mapping has them by default, or the error that says why there are none."""
    if not isinstance(answer, Mapping) or 'action' not in answer:
        return PolicyError(f"expected {{'action': [...]}}, got {answer!r:.200}")
    return {'actions': answer['action']}
