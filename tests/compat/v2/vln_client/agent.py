"""The agent that is evaluated: it does what the instruction of its episode says, word for word."""

from __future__ import annotations

from typing import Any

WORDS = {'stop': 0, 'forward': 1, 'left': 2, 'right': 3}


class Agent:
    """One for all envs; `move` is the controller that gets its actions."""

    def __init__(self, move: str):
        self.move = move
        self._steps: dict[str, int] = {}

    def act(self, data: dict[str, Any] | None) -> dict[str, Any]:
        """The next action of an env in whose episode `data` is; after the last word it stops."""
        if data is None:
            return {'h1': {'stop': []}}
        words = data['instruction']['instruction_text'].split()
        step = self._steps.get(data['path_key'], 0)
        self._steps[data['path_key']] = step + 1
        word = words[step] if step < len(words) else 'stop'
        return {'h1': {'stop': []} if word == 'stop' else {self.move: [WORDS[word]]}}
